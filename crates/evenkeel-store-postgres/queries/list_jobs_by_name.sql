SELECT job_no FROM job
 WHERE tenant_no = $1::int4 AND standing <> 3 AND (name, configuration) >= ($16::text, $19::text)
 ORDER BY name ASC, configuration ASC LIMIT $17::int8 OFFSET $18::int8
