UPDATE job SET executor = $2, lane = $3 WHERE job_no = $1
