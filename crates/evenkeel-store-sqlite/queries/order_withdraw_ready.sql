DELETE FROM ready WHERE job_no = ?1
RETURNING scheduled_at, job_no, sequence, attempt, tenant_no, prev_at, prev_sequence
