DELETE FROM request WHERE tenant_no = ?1 AND key = ?2 AND begun_at = ?3 AND status IS NULL;
