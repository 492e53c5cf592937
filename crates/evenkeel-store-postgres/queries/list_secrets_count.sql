SELECT count(*) FROM secret WHERE tenant_no = $1
