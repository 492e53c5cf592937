UPDATE api_key SET revoked_at = coalesce($3, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
WHERE id = $2 AND tenant_no = $1 AND revoked_at IS NULL
