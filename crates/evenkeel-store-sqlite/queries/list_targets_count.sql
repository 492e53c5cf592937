SELECT targets FROM tenant WHERE tenant_no = ?1
