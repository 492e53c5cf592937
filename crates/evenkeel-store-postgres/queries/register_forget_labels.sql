DELETE FROM job_label WHERE job_no = $1
