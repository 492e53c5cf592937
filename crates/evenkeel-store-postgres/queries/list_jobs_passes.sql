-- Do the jobs of `c` pass the filter? The states are numbered as in JobStatus::ALL. Each is looked
-- up by its number (LIMIT 1 sees to that): there are never many. A due job with blackouts (7) is pending
-- or scheduled: who asks decides, from the last three columns.
SELECT j.job_no, j.updated_at, s.next_at, CASE WHEN $13::int2 = 2 THEN j.name END,
       CASE WHEN $13::int2 = 2 THEN j.configuration END,
       ($2::text IS NULL OR starts_with(j.name, $2))
   AND ($3::text IS NULL OR j.source_id = $3)
   AND ($4::text IS NULL OR starts_with(j.source_id, $4))
   AND ($5::int2 IS NULL OR CASE {status} WHEN $5 THEN true WHEN 7 THEN $5 IN (0, 1) ELSE false END)
   AND ($6::int2 IS NULL
        OR $6 = coalesce((SELECT level FROM watch v WHERE v.job_no = j.job_no), 0))
   AND ($7::text IS NULL OR j.executor = $7)
   AND ($8::int2 IS NULL OR j.lane = $8)
   AND NOT EXISTS (SELECT FROM unnest($9::text[], $10::text[]) AS l(key, value)
                    WHERE NOT EXISTS (SELECT FROM job_label b
                                       WHERE b.job_no = j.job_no AND b.key = l.key
                                         AND b.value = l.value))
   AND ($11::int8 IS NULL OR s.next_at >= $11)
   AND ($12::int8 IS NULL OR s.next_at < $12)
   AND ($14::int8 IS NULL OR j.target_no = $14)
   AND ($15::int2 IS NULL
        OR s.live > 0 AND ($15 = 1) =
           (s.live > (SELECT count(*) FROM ready r WHERE r.job_no = j.job_no)
                   + (SELECT count(*) FROM wake w WHERE w.job_no = j.job_no)))
   AND ($13::int2 <> 2 OR j.name IS NOT NULL)
   AND ($13::int2 <> 3 OR s.next_at IS NOT NULL) AS passes,
       CASE WHEN $5::int2 IN (0, 1) AND {held} THEN j.definition END, s.average_us, {now}
  FROM c
 CROSS JOIN LATERAL (SELECT * FROM job WHERE job.job_no = c.job_no LIMIT 1) AS j
 CROSS JOIN LATERAL (SELECT * FROM job_state WHERE job_state.job_no = c.job_no LIMIT 1) AS s
 WHERE j.tenant_no = $1::int4 AND j.standing <> 3
