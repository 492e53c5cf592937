-- All of the queue is looked at: what is due beyond what workers take in a moment is not in it.
SELECT DISTINCT r.job_no FROM ready r JOIN job_state s ON s.job_no = r.job_no
WHERE r.should_start_by < ?1 AND s.watched = 0
  AND (r.job_no & 255) IN (SELECT value FROM json_each(?2))
LIMIT ?3
