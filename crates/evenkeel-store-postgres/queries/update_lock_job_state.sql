SELECT generation, last_fired_at, live, head_at, head_sequence, average_us FROM job_state
 WHERE job_no = $1 FOR NO KEY UPDATE;
