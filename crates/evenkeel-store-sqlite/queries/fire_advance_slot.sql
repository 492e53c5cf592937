-- `fire_advance` for a job whose next time lies in another slot.
UPDATE job_state
SET next_at = ?5, last_fired_at = coalesce(?6, last_fired_at), head_at = ?7, head_sequence = ?8,
    live = live + ?9, executions = executions + ?10, fired = fired + ?9, slot = ?13
WHERE job_no = ?1 AND generation = ?2 AND next_at = ?3 AND active = 1 AND (?4 = 0 OR live = 0)
  AND head_at IS ?11 AND head_sequence IS ?12
