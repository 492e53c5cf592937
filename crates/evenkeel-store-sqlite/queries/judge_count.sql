UPDATE tenant SET warnings = warnings + ?2, errors = errors + ?3 WHERE tenant_no = ?1
