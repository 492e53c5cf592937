DELETE FROM wake WHERE job_no = ?1
RETURNING scheduled_at, job_no, sequence, attempt, tenant_no
