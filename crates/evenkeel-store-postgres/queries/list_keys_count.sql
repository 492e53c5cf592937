SELECT count(*) FROM api_key WHERE tenant_no = $1
