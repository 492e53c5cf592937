INSERT INTO audit (at, tenant_no, subject, role, action, target, status, denied, detail, remote,
                   request_id)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
