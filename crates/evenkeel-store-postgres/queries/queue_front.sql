-- Each part follows its index and ends at the limit. One that stands at both fronts counts twice.
SELECT coalesce(sum(hashint8(front.job_no # front.scheduled_at # front.attempt::int8)), 0)::int8
  FROM unnest($1::text[]) AS p(pool)
 CROSS JOIN generate_series(0, 2) AS l(lane)
 CROSS JOIN LATERAL (
       (SELECT job_no, scheduled_at, attempt FROM ready
         WHERE pool = p.pool AND lane = l.lane::int2 AND open_from IS NULL
         ORDER BY priority DESC, should_start_by, since, job_no LIMIT $2)
       UNION ALL
       (SELECT job_no, scheduled_at, attempt FROM ready
         WHERE pool = p.pool AND lane = l.lane::int2 AND open_from IS NULL
         ORDER BY rise, should_start_by, since, job_no LIMIT $2)) AS front;
