SELECT count(*) FROM (
    WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
    SELECT 1
    FROM shard CROSS JOIN job_state s
      ON s.shard = shard.no AND s.slot BETWEEN coalesce(?10 / 900000000, -2147483648)
                                           AND coalesce(?11 / 900000000, 2147483647)
    LIMIT 10001)
