INSERT INTO job (id, tenant_no, name, configuration, source_id, about, definition,
                 created_at, updated_at, executor, lane, number, target_no)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?10, ?11, ?12)
