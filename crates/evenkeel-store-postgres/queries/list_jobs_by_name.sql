SELECT job_no FROM job
 WHERE tenant_no = $1::int4 AND standing <> 3 AND (name, configuration) >= ($14::text, $17::text)
 ORDER BY name ASC, configuration ASC LIMIT $15::int8 OFFSET $16::int8
