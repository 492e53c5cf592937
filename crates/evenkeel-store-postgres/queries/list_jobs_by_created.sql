SELECT job_no FROM job
 WHERE tenant_no = $1::int4 AND standing <> 3 AND job_no > $16::int8
 ORDER BY job_no ASC LIMIT $17::int8 OFFSET $18::int8
