UPDATE job_state SET live = max(live - ?2, 0) WHERE job_no = ?1
RETURNING live, head_at, head_sequence
