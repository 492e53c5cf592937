-- Named secrets.

-- :fragment secret_columns
name, version, key_id, created_at, created_by, updated_at, updated_by

-- :fragment sealed_columns
tenant_no, name, key_id, nonce, ciphertext

-- :name delete_secret (tenant, name)
DELETE FROM secret WHERE tenant_no = :tenant AND name = :name

-- :name get_secret (tenant, name)
SELECT {secret_columns}
FROM secret
WHERE tenant_no = :tenant AND name = :name

-- :name get_secrets (tenant, names)
SELECT {sealed_columns} FROM secret WHERE tenant_no = :tenant AND name = ANY (:names)

-- :name list_secrets (tenant, after, limit, offset)
SELECT {secret_columns}
FROM secret
WHERE tenant_no = :tenant AND name > :after
ORDER BY name
LIMIT :limit OFFSET :offset

-- :name list_secrets_count
SELECT count(*) FROM secret WHERE tenant_no = $1

-- :name put_secret (tenant, name, key_id, nonce, ciphertext, now, by)
INSERT INTO secret AS s (tenant_no, name, version, key_id, nonce, ciphertext, created_at,
                         created_by,
                         updated_at, updated_by)
SELECT :tenant, :name, 1, :key_id, :nonce, :ciphertext, at, :by, at, :by
FROM (SELECT {clock} AS at) AS clock
ON CONFLICT (tenant_no, name) DO UPDATE SET
    version = s.version + 1, key_id = excluded.key_id, nonce = excluded.nonce,
    ciphertext = excluded.ciphertext, updated_at = excluded.updated_at,
    updated_by = excluded.updated_by
RETURNING {secret_columns}

-- :name reseal_secrets (only_tenant, tenant, name, if_nonce, key_id, nonce, ciphertext)
UPDATE secret AS s SET key_id = new.key_id, nonce = new.nonce, ciphertext = new.ciphertext
FROM unnest(:tenant::int4[], :name::text[], :if_nonce::bytea[], :key_id::text[], :nonce::bytea[],
            :ciphertext::bytea[])
     AS new (tenant_no, name, if_nonce, key_id, nonce, ciphertext)
WHERE s.tenant_no = new.tenant_no AND s.name = new.name AND s.nonce = new.if_nonce
  AND (:only_tenant::int4 IS NULL OR s.tenant_no = :only_tenant)

-- :name stale_secrets (tenant, key_id, after_tenant, after_name, limit)
SELECT {sealed_columns}
FROM secret
WHERE (:tenant::int4 IS NULL OR tenant_no = :tenant) AND key_id <> :key_id
  AND (tenant_no, name) > (:after_tenant::int4, :after_name::text)
ORDER BY tenant_no, name
LIMIT :limit
