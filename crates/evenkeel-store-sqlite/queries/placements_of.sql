SELECT j.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at) AS placed_at, s.live, s.rhythm, s.cost_us
FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.job_no = ?2 AND s.tenant_no = ?1 AND s.active = 1 AND s.next_at IS NOT NULL
