INSERT INTO api_key (id, tenant_no, name, role, hash, created_by, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6,
        coalesce($7, (extract(epoch FROM clock_timestamp()) * 1000000)::int8), $8)
ON CONFLICT DO NOTHING
