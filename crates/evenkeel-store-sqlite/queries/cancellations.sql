SELECT scheduled_at, job_no, sequence, attempt FROM cancellation WHERE node_no = ?1
