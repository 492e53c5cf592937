SELECT sequence FROM run WHERE scheduled_at = $1 AND job_no = $2
 UNION
SELECT sequence FROM ready WHERE scheduled_at = $1 AND job_no = $2
 UNION
SELECT sequence FROM wake WHERE scheduled_at = $1 AND job_no = $2;
