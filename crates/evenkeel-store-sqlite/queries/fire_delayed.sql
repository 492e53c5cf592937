-- Firing delayed attempts: retries and triggered runs, each with a separate due time.

-- :fragment this_delayed_attempt
shard = :shard AND due = :due AND {this_attempt}

-- :name fire_delayed_classify (shard, due, scheduled_at, job_no, sequence, attempt)
SELECT 1 FROM delayed_attempt
WHERE {this_delayed_attempt}

-- :name fire_delayed_take (shard, due, scheduled_at, job_no, sequence, attempt)
DELETE FROM delayed_attempt
WHERE {this_delayed_attempt}
RETURNING priority

-- :name look_ahead_delayed
SELECT w.due, w.scheduled_at, w.job_no, w.sequence, w.attempt, w.priority,
       EXISTS (SELECT 1 FROM checkpoint c
               WHERE c.scheduled_at = w.scheduled_at AND c.job_no = w.job_no
                 AND c.sequence = w.sequence) AS has_checkpoint
FROM delayed_attempt w WHERE w.shard = ?1 AND w.due <= ?2
ORDER BY w.due, w.scheduled_at, w.job_no, w.sequence, w.attempt LIMIT ?3

-- :name postpone (shard, due, scheduled_at, job_no, sequence, attempt, until)
UPDATE delayed_attempt SET due = :until
WHERE {this_delayed_attempt}
