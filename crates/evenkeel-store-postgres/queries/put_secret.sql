INSERT INTO secret AS s (tenant_no, name, version, key_id, nonce, ciphertext, created_at, created_by,
                         updated_at, updated_by)
SELECT $1, $2, 1, $3, $4, $5, at, $7, at, $7
FROM (SELECT coalesce($6, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS at) AS clock
ON CONFLICT (tenant_no, name) DO UPDATE SET
    version = s.version + 1, key_id = excluded.key_id, nonce = excluded.nonce,
    ciphertext = excluded.ciphertext, updated_at = excluded.updated_at,
    updated_by = excluded.updated_by
RETURNING name, version, key_id, created_at, created_by, updated_at, updated_by
