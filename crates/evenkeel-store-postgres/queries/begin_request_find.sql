SELECT fingerprint, status, headers, body FROM request WHERE tenant_no = $1 AND key = $2;
