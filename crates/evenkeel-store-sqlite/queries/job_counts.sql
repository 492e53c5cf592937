-- How many of the jobs of `c` are in which state. Due ones with blackouts (7) come with what decides it.
SELECT {status} AS status, CASE WHEN {held} THEN j.definition END AS held,
       CASE WHEN {held} THEN s.next_at END AS next_at,
       CASE WHEN {held} THEN s.average_us END AS average_us, count(*) AS jobs
FROM c CROSS JOIN job j ON j.job_no = c.job_no CROSS JOIN job_state s ON s.job_no = c.job_no
WHERE j.tenant_no = ?1 AND j.standing <> 3
GROUP BY 1, 2, 3, 4
