-- Named secrets.

-- :fragment secret_columns
name, version, key_id, created_at, created_by, updated_at, updated_by

-- :fragment sealed_secret_columns
tenant_no, name, key_id, nonce, ciphertext

-- :name delete_secret
DELETE FROM secret WHERE tenant_no = ?1 AND name = ?2

-- :name get_secret
SELECT {secret_columns}
FROM secret
WHERE tenant_no = ?1 AND name = ?2

-- :name get_secrets
SELECT {sealed_secret_columns} FROM secret WHERE tenant_no = ?1 AND name = ?2

-- :name list_secrets (tenant_no, after_name, limit, offset)
SELECT {secret_columns}
FROM secret
WHERE tenant_no = :tenant_no AND name > :after_name
ORDER BY name
LIMIT :limit OFFSET :offset

-- :name list_secrets_count
SELECT count(*) FROM secret WHERE tenant_no = ?1

-- :name put_secret (tenant_no, name, key_id, nonce, ciphertext, updated_at, updated_by)
INSERT INTO secret (tenant_no, name, version, key_id, nonce, ciphertext, created_at, created_by,
                    updated_at, updated_by)
VALUES (:tenant_no, :name, 1, :key_id, :nonce, :ciphertext, :updated_at, :updated_by, :updated_at,
        :updated_by)
ON CONFLICT (tenant_no, name) DO UPDATE SET
    version = version + 1, key_id = :key_id, nonce = :nonce, ciphertext = :ciphertext,
    updated_at = :updated_at, updated_by = :updated_by
RETURNING {secret_columns}

-- :name reseal_secrets (tenant_no, name, old_nonce, key_id, nonce, ciphertext)
UPDATE secret SET key_id = :key_id, nonce = :nonce, ciphertext = :ciphertext
WHERE tenant_no = :tenant_no AND name = :name AND nonce = :old_nonce

-- :name stale_secrets (tenant_no, current_key_id, after_tenant_no, after_name, limit)
SELECT {sealed_secret_columns}
FROM secret
WHERE (:tenant_no IS NULL OR tenant_no = :tenant_no) AND key_id <> :current_key_id
  AND (tenant_no, name) > (:after_tenant_no, :after_name)
ORDER BY tenant_no, name
LIMIT :limit
