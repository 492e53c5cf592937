SELECT job_no FROM job
 WHERE tenant_no = $1::int4 AND standing <> 3 AND (updated_at, job_no) > ($18::int8, $15::int8)
 ORDER BY updated_at ASC, job_no ASC LIMIT $16::int8 OFFSET $17::int8
