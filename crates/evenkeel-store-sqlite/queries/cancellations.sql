SELECT scheduled_at, job_no, sequence, attempt, superseded FROM cancellation WHERE node_no = ?1
