INSERT INTO api_key (id, tenant_no, name, role, hash, created_by, created_at, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO NOTHING
