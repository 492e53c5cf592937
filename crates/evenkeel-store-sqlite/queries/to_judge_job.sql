SELECT w.job_no, w.tenant_no, w.touched, w.level,
       s.active, s.next_at, s.last_fired_at, s.live, s.head_at, s.head_sequence,
       s.failures, s.last_start_at, s.last_end_at, s.last_good_start_at, s.last_good_end_at,
       s.average_us, s.variance, coalesce(s.placed_at, j.created_at) AS since, j.definition
FROM watch w JOIN job_state s ON s.job_no = w.job_no JOIN job j ON j.job_no = w.job_no
WHERE w.job_no = ?1
