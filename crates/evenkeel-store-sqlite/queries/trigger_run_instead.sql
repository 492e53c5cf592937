SELECT next_at, live, head_at, head_sequence FROM job_state WHERE job_no = ?1
