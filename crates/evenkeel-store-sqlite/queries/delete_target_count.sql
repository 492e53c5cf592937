UPDATE tenant SET targets = targets - 1 WHERE tenant_no = ?1
