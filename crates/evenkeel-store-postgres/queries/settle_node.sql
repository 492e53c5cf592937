-- Locked before its job's state, as an end locks them.
SELECT node_no, cancel_asked FROM run
 WHERE scheduled_at = $1 AND job_no = $2 AND sequence = $3 AND attempt = $4 AND tenant_no = $5
   AND fence = $6 AND status = 1
   FOR NO KEY UPDATE;
