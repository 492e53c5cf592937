SELECT job_no FROM job
 WHERE tenant_no = $1::int4 AND standing <> 3 AND source_id IS NOT NULL
   AND source_id >= $4 AND source_id < $4 || U&'\+10FFFF' LIMIT 10001
