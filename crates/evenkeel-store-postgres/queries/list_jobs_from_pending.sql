-- What waits, what is due by now, and what has no time and never ran. The due ones are among those of
-- this slot and the slots before it: a slot of a large store holds many that are not due yet, so more of
-- them are looked at than of the others.
SELECT job_no FROM (SELECT job_no, tenant_no FROM ready LIMIT 10001) AS r WHERE tenant_no = $1::int4
 UNION
SELECT job_no FROM (SELECT job_no, tenant_no FROM wake LIMIT 10001) AS w WHERE tenant_no = $1::int4
 UNION
SELECT job_no FROM (SELECT job_no FROM job_state
                     WHERE tenant_no = $1::int4 AND slot IS NULL AND active LIMIT 10001) AS s
 UNION
SELECT job_no
  FROM (SELECT job_no
          FROM (SELECT s.job_no, s.tenant_no, s.live, s.next_at
                  FROM generate_series(0, 255) AS h(shard)
                 CROSS JOIN LATERAL (SELECT job_no, tenant_no, live, next_at FROM job_state
                                      WHERE shard = h.shard AND slot <= ({now} / 900000000)::int4
                                      LIMIT 100001) AS s
                 LIMIT 100001) AS s
         WHERE tenant_no = $1::int4 AND live = 0 AND next_at <= {now} LIMIT 10001) AS d
