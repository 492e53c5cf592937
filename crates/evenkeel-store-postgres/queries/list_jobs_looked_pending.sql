-- If not all of this slot can be looked at, nobody knows how many of them are due: too many.
SELECT greatest((SELECT count(*) FROM (SELECT FROM ready LIMIT 10001) AS r),
                (SELECT count(*) FROM (SELECT FROM wake LIMIT 10001) AS w),
                (SELECT count(*) FROM (SELECT FROM job_state
                                        WHERE tenant_no = $1::int4 AND slot IS NULL AND active
                                        LIMIT 10001) AS s),
                (SELECT CASE WHEN count(*) > 100000 THEN 10001
                             ELSE count(*) FILTER (WHERE tenant_no = $1::int4 AND live = 0
                                                     AND next_at <= {now}) END
                   FROM (SELECT s.tenant_no, s.live, s.next_at
                  FROM generate_series(0, 255) AS h(shard)
                 CROSS JOIN LATERAL (SELECT tenant_no, live, next_at FROM job_state
                                      WHERE shard = h.shard AND slot <= ({now} / 900000000)::int4
                                      LIMIT 100001) AS s
                 LIMIT 100001) AS s))
