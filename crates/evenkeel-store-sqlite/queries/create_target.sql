INSERT INTO target (tenant_no, number, source_id, name, url, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
