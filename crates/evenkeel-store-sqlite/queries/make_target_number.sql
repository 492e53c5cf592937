SELECT next_target FROM tenant WHERE tenant_no = ?1
