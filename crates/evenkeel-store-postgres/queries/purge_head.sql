UPDATE job_state SET head_at = $2, head_sequence = $3 WHERE job_no = $1;
