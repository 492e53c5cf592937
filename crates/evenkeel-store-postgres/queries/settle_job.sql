SELECT id FROM job WHERE job_no = $1;
