DELETE FROM dead_letter
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM dead_letter WHERE job_no = $1 LIMIT $2));
