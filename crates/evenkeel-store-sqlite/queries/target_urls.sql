SELECT url FROM target WHERE tenant_no = ?1 AND number = ?2
