SELECT id FROM job WHERE tenant_no = ?1 AND number = ?2 AND standing <> 3
