DELETE FROM wake WHERE job_no = $2 AND scheduled_at = $1 AND sequence = $3 AND tenant_no = $4
RETURNING scheduled_at, job_no, sequence, attempt, tenant_no;
