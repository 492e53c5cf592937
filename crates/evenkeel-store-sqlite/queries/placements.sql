SELECT j.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at) AS placed_at, s.live, s.rhythm, s.cost_us
FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.tenant_no = ?1 AND j.standing <> 3 AND j.job_no > ?2
  AND s.active = 1 AND s.next_at IS NOT NULL
ORDER BY j.job_no LIMIT ?3
