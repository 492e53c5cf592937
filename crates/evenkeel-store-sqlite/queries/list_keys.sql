SELECT k.id, k.tenant_no, t.name AS tenant_name, k.name, k.role, k.created_by, k.created_at,
       k.expires_at, k.revoked_at, k.last_used_at
FROM api_key k JOIN tenant t ON t.tenant_no = k.tenant_no
WHERE k.tenant_no = ?1 AND k.id > ?2
ORDER BY k.id
LIMIT ?3 OFFSET ?4
