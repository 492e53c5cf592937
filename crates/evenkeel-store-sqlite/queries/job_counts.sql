-- How many of the jobs of `c` are in which state.
SELECT {status} AS status, count(*) AS jobs
FROM c CROSS JOIN job j ON j.job_no = c.job_no CROSS JOIN job_state s ON s.job_no = c.job_no
WHERE j.tenant_no = ?1 AND j.standing <> 3
GROUP BY 1
