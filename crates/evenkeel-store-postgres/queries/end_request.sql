UPDATE request SET status = $4, headers = $5, body = $6
 WHERE tenant_no = $1 AND key = $2 AND begun_at = $3 AND status IS NULL;
