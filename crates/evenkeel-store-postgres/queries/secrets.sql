-- Named secrets.

-- :name delete_secret
DELETE FROM secret WHERE tenant_no = $1 AND name = $2

-- :name get_secret
SELECT name, version, key_id, created_at, created_by, updated_at, updated_by
FROM secret
WHERE tenant_no = $1 AND name = $2

-- :name get_secrets
SELECT tenant_no, name, key_id, nonce, ciphertext FROM secret WHERE tenant_no = $1 AND name = ANY ($2)

-- :name list_secrets
SELECT name, version, key_id, created_at, created_by, updated_at, updated_by
FROM secret
WHERE tenant_no = $1 AND name > $2
ORDER BY name
LIMIT $3 OFFSET $4

-- :name list_secrets_count
SELECT count(*) FROM secret WHERE tenant_no = $1

-- :name put_secret
INSERT INTO secret AS s (tenant_no, name, version, key_id, nonce, ciphertext, created_at, created_by,
                         updated_at, updated_by)
SELECT $1, $2, 1, $3, $4, $5, at, $7, at, $7
FROM (SELECT coalesce($6, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS at) AS clock
ON CONFLICT (tenant_no, name) DO UPDATE SET
    version = s.version + 1, key_id = excluded.key_id, nonce = excluded.nonce,
    ciphertext = excluded.ciphertext, updated_at = excluded.updated_at,
    updated_by = excluded.updated_by
RETURNING name, version, key_id, created_at, created_by, updated_at, updated_by

-- :name reseal_secrets
UPDATE secret AS s SET key_id = new.key_id, nonce = new.nonce, ciphertext = new.ciphertext
FROM unnest($2::int4[], $3::text[], $4::bytea[], $5::text[], $6::bytea[], $7::bytea[])
     AS new (tenant_no, name, if_nonce, key_id, nonce, ciphertext)
WHERE s.tenant_no = new.tenant_no AND s.name = new.name AND s.nonce = new.if_nonce
  AND ($1::int4 IS NULL OR s.tenant_no = $1)

-- :name stale_secrets
SELECT tenant_no, name, key_id, nonce, ciphertext
FROM secret
WHERE ($1::int4 IS NULL OR tenant_no = $1) AND key_id <> $2 AND (tenant_no, name) > ($3::int4, $4::text)
ORDER BY tenant_no, name
LIMIT $5
