WITH RECURSIVE shard (no) AS (
    SELECT coalesce(?2, 0) UNION ALL SELECT no + 1 FROM shard WHERE ?2 IS NULL AND no < 255)
SELECT count(*) FROM (
    SELECT 1 FROM shard CROSS JOIN job_state s ON s.shard = shard.no AND s.slot = ?1 LIMIT 10001)
