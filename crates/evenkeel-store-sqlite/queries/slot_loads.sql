WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
SELECT count(*) FROM (
    SELECT 1 FROM shard CROSS JOIN job_state s ON s.shard = shard.no AND s.slot = ?2
    WHERE s.tenant_no = ?1 AND s.active = 1 LIMIT ?3)
