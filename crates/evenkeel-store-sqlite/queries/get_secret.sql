SELECT name, version, key_id, created_at, created_by, updated_at, updated_by
FROM secret
WHERE tenant_no = ?1 AND name = ?2
