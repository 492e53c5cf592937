SELECT w.due, w.scheduled_at, w.job_no, w.sequence, w.attempt, w.priority,
       EXISTS (SELECT 1 FROM checkpoint c
               WHERE c.scheduled_at = w.scheduled_at AND c.job_no = w.job_no
                 AND c.sequence = w.sequence) AS has_checkpoint
FROM wake w WHERE w.shard = ?1 AND w.due <= ?2
ORDER BY w.due, w.scheduled_at, w.job_no, w.sequence, w.attempt LIMIT ?3
