DELETE FROM cancellation WHERE node_no = ?1
RETURNING scheduled_at, job_no, sequence, attempt
