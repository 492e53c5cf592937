WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
SELECT max((SELECT max(slot) FROM job_state s WHERE s.shard = shard.no AND s.slot <= ?1)) FROM shard
