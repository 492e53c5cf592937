SELECT s.job_no, s.tenant_no, s.next_at, s.active, s.generation, s.live, s.head_at, s.head_sequence,
       s.failures, s.last_start_at, s.last_end_at, s.last_good_start_at, s.last_good_end_at,
       s.average_us, s.variance, coalesce(s.placed_at, j.created_at) AS since, s.fired, j.definition
FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.job_no = ?1 AND j.standing < 2
