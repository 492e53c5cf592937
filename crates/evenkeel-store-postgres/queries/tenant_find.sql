SELECT tenant_no FROM tenant WHERE name = $1;
