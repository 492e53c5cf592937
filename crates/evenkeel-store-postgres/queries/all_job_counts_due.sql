-- The jobs of all tenants in this slot and the slots before it, up to a bound: how many are due, how many
-- are not, and of due ones with blackouts what decides whether those hold them.
SELECT s.is_due, count(*), CASE WHEN s.held THEN s.definition END,
       CASE WHEN s.held THEN s.average_us END, {now}, CASE WHEN s.held THEN s.next_at END
  FROM (SELECT d.*, j.definition,
               coalesce(d.is_due AND strpos(j.definition, '"blackout_periods"') > 0, false) AS held
          FROM (SELECT s.*, s.live = 0 AND s.next_at <= {now} AS is_due
                  FROM generate_series(0, 255) AS h(shard)
                 CROSS JOIN LATERAL (SELECT job_no, live, next_at, average_us FROM job_state
                                      WHERE shard = h.shard AND slot <= ({now} / 900000000)::int4
                                      LIMIT $1) AS s
                 LIMIT $1) AS d
          LEFT JOIN LATERAL (SELECT definition FROM job
                              WHERE job.job_no = d.job_no AND d.is_due LIMIT 1) AS j ON true) AS s
 GROUP BY 1, 3, 4, 5, 6
