SELECT s.job_no, s.tenant_no, s.generation, s.average_us, j.definition,
       CASE WHEN s.active = 1 THEN s.next_at END AS next_at
FROM job_state s INDEXED BY job_state_uncounted JOIN job j ON j.job_no = s.job_no
WHERE s.rhythm IS NULL ORDER BY s.job_no LIMIT ?1
