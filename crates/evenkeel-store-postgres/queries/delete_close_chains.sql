UPDATE job_state SET live = $2, head_at = $3, head_sequence = $4 WHERE job_no = $1;
