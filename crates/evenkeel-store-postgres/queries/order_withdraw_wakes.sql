DELETE FROM wake WHERE job_no = ANY ($1::int8[])
RETURNING scheduled_at, job_no, sequence, attempt, tenant_no;
