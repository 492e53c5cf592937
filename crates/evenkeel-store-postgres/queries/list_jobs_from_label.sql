SELECT job_no FROM job_label
 WHERE tenant_no = $1::int4 AND key = ($9::text[])[1] AND value = ($10::text[])[1] LIMIT 10001
