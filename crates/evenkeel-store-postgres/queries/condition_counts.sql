SELECT job_count, warnings, errors FROM tenant WHERE tenant_no = $1;
