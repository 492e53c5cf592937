SELECT job_no, live, head_at, head_sequence FROM job_state
 WHERE job_no = ANY ($1::int8[]) ORDER BY job_no FOR NO KEY UPDATE;
