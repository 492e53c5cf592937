-- Firing delayed attempts: retries and triggers with a time of their own.

-- :name fire_delayed_classify
SELECT 1 FROM delayed_attempt
WHERE shard = ?1 AND due = ?2 AND scheduled_at = ?3 AND job_no = ?4 AND sequence = ?5
  AND attempt = ?6

-- :name fire_delayed_head
SELECT head_at, head_sequence FROM job_state WHERE job_no = ?1

-- :name fire_delayed_link
UPDATE job_state SET head_at = ?2, head_sequence = ?3 WHERE job_no = ?1

-- :name fire_delayed_take
DELETE FROM delayed_attempt
WHERE shard = ?1 AND due = ?2 AND scheduled_at = ?3 AND job_no = ?4 AND sequence = ?5
  AND attempt = ?6
RETURNING priority

-- :name look_ahead_delayed
SELECT w.due, w.scheduled_at, w.job_no, w.sequence, w.attempt, w.priority,
       EXISTS (SELECT 1 FROM checkpoint c
               WHERE c.scheduled_at = w.scheduled_at AND c.job_no = w.job_no
                 AND c.sequence = w.sequence) AS has_checkpoint
FROM delayed_attempt w WHERE w.shard = ?1 AND w.due <= ?2
ORDER BY w.due, w.scheduled_at, w.job_no, w.sequence, w.attempt LIMIT ?3

-- :name postpone
UPDATE delayed_attempt SET due = ?7
WHERE shard = ?1 AND due = ?2 AND scheduled_at = ?3 AND job_no = ?4 AND sequence = ?5 AND attempt = ?6
