SELECT next_job FROM tenant WHERE tenant_no = ?1
