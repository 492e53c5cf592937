SELECT job_no, live, head_at, head_sequence, counted, rhythm, cost_us FROM job_state
 WHERE job_no = ANY ($1::int8[]) ORDER BY job_no FOR NO KEY UPDATE;
