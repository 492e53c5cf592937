-- The end says when the next one is, unless there is none any more.
UPDATE job_state SET next_at = ?2, slot = ?3
WHERE job_no = ?1 AND next_at IS NOT NULL AND (last_fired_at IS NULL OR last_fired_at < ?2)
