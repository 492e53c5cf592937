-- A job that stops has no next time, whatever it had.
UPDATE job_state
SET generation = generation + 1, active = ?2, stopped_at = ?3,
    next_at = CASE WHEN ?2 THEN next_at END, slot = CASE WHEN ?2 THEN slot END
WHERE job_no = ?1
