-- What still waits or runs moved between the looks.
SELECT count(*) > 0, count(*) FILTER (WHERE status IN (0, 1)) > 0
  FROM run WHERE scheduled_at = $1 AND job_no = $2 AND sequence = $3 AND tenant_no = $4;
