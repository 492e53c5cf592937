-- What counts for nothing still does, and what nobody has looked at is looked at later.
UPDATE job_state
SET next_at = ?2, slot = ?3, placed_at = ?4, generation = generation + 1,
    rhythm = CASE WHEN rhythm <> 0 THEN ?5 ELSE rhythm END
WHERE job_no = ?1
