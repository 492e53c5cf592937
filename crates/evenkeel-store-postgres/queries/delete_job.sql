-- The name is free from here on.
UPDATE job SET standing = 3, updated_at = coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
 WHERE id = $2 AND tenant_no = $3 AND standing <> 3
RETURNING job_no, updated_at;
