-- ?17 is one shard, or NULL for all.
WITH RECURSIVE shard (no) AS (
    SELECT coalesce(?17, 0) UNION ALL SELECT no + 1 FROM shard WHERE ?17 IS NULL AND no < 255)
SELECT s.job_no FROM shard CROSS JOIN job_state s ON s.shard = shard.no AND s.slot = ?16
WHERE s.tenant_no = ?1
