SELECT number FROM target WHERE tenant_no = ?1 AND source_id = ?2 AND number <> ?3
