-- Named secrets.

-- :name delete_secret
DELETE FROM secret WHERE tenant_no = ?1 AND name = ?2

-- :name get_secret
SELECT name, version, key_id, created_at, created_by, updated_at, updated_by
FROM secret
WHERE tenant_no = ?1 AND name = ?2

-- :name get_secrets
SELECT tenant_no, name, key_id, nonce, ciphertext FROM secret WHERE tenant_no = ?1 AND name = ?2

-- :name list_secrets
SELECT name, version, key_id, created_at, created_by, updated_at, updated_by
FROM secret
WHERE tenant_no = ?1 AND name > ?2
ORDER BY name
LIMIT ?3 OFFSET ?4

-- :name list_secrets_count
SELECT count(*) FROM secret WHERE tenant_no = ?1

-- :name put_secret
INSERT INTO secret (tenant_no, name, version, key_id, nonce, ciphertext, created_at, created_by,
                    updated_at, updated_by)
VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, ?6, ?7)
ON CONFLICT (tenant_no, name) DO UPDATE SET
    version = version + 1, key_id = ?3, nonce = ?4, ciphertext = ?5, updated_at = ?6, updated_by = ?7
RETURNING name, version, key_id, created_at, created_by, updated_at, updated_by

-- :name reseal_secrets
UPDATE secret SET key_id = ?4, nonce = ?5, ciphertext = ?6
WHERE tenant_no = ?1 AND name = ?2 AND nonce = ?3

-- :name stale_secrets
SELECT tenant_no, name, key_id, nonce, ciphertext
FROM secret
WHERE (?1 IS NULL OR tenant_no = ?1) AND key_id <> ?2 AND (tenant_no, name) > (?3, ?4)
ORDER BY tenant_no, name
LIMIT ?5
