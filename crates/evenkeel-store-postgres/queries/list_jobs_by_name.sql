SELECT job_no FROM job
 WHERE tenant_no = $1::int4 AND standing <> 3 AND (name, configuration) >= ($15::text, $18::text)
 ORDER BY name ASC, configuration ASC LIMIT $16::int8 OFFSET $17::int8
