INSERT INTO secret (tenant_no, name, version, key_id, nonce, ciphertext, created_at, created_by,
                    updated_at, updated_by)
VALUES (?1, ?2, 1, ?3, ?4, ?5, ?6, ?7, ?6, ?7)
ON CONFLICT (tenant_no, name) DO UPDATE SET
    version = version + 1, key_id = ?3, nonce = ?4, ciphertext = ?5, updated_at = ?6, updated_by = ?7
RETURNING name, version, key_id, created_at, created_by, updated_at, updated_by
