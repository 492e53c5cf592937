SELECT job_no FROM job_label
WHERE tenant_no = $1::int4 AND key = ($9::text[])[1] AND value = ($10::text[])[1] AND job_no > $16::int8
ORDER BY job_no ASC LIMIT $17::int8 OFFSET $18::int8
