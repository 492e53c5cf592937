-- How many of the jobs of `c` are in which state.
SELECT {status} AS status, count(*)
  FROM c
 CROSS JOIN LATERAL (SELECT * FROM job WHERE job.job_no = c.job_no LIMIT 1) AS j
 CROSS JOIN LATERAL (SELECT * FROM job_state WHERE job_state.job_no = c.job_no LIMIT 1) AS s
 WHERE j.tenant_no = $1::int4 AND j.standing <> 3
 GROUP BY 1
