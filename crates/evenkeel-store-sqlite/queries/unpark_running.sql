SELECT count(*)
FROM place p CROSS JOIN run r
  ON r.scheduled_at = p.scheduled_at AND r.job_no = p.job_no AND r.sequence = p.sequence
 AND r.attempt = p.attempt
WHERE p.key = ?1 AND r.status = 1
