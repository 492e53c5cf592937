UPDATE api_key SET revoked_at = ?3
WHERE id = ?2 AND tenant_no = ?1 AND revoked_at IS NULL
