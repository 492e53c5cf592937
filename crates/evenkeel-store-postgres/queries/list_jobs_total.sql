SELECT job_count FROM tenant WHERE tenant_no = $1;
