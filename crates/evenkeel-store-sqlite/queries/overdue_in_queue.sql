-- The next ?7 of the queue in the order of their keys, and which of them are wanted.
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt,
       r.should_start_by < ?1 AND (r.job_no & 255) IN (SELECT value FROM json_each(?2))
       AND (SELECT s.watched = 0 FROM job_state s WHERE s.job_no = r.job_no) AS is_overdue
FROM ready r
WHERE (r.scheduled_at, r.job_no, r.sequence, r.attempt) > (?3, ?4, ?5, ?6)
ORDER BY r.scheduled_at, r.job_no, r.sequence, r.attempt LIMIT ?7
