DELETE FROM secret WHERE tenant_no = $1 AND name = $2
