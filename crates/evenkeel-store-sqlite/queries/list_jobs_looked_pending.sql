-- If not all of this slot can be looked at, nobody knows how many of them are due: too many.
SELECT max((SELECT count(*) FROM (SELECT 1 FROM ready LIMIT 10001)),
           (SELECT count(*) FROM (SELECT 1 FROM wake LIMIT 10001)),
           (SELECT count(*) FROM (SELECT 1 FROM job_state
                                  WHERE tenant_no = ?1 AND slot IS NULL AND active = 1
                                  LIMIT 10001)),
           (SELECT iif(count(*) > 100000, 10001,
                       count(*) FILTER (WHERE tenant_no = ?1 AND live = 0 AND next_at <= ?21))
            FROM (
                WITH RECURSIVE shard (no) AS (
                    SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
                SELECT s.tenant_no, s.live, s.next_at
                FROM shard CROSS JOIN job_state s
                  ON s.shard = shard.no AND s.slot <= ?21 / 900000000
                LIMIT 100001)))
