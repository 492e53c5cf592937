SELECT job_no FROM job
 WHERE tenant_no = $1::int4 AND standing <> 3 AND (updated_at, job_no) > ($19::int8, $16::int8)
 ORDER BY updated_at ASC, job_no ASC LIMIT $17::int8 OFFSET $18::int8
