SELECT live FROM job_state
WHERE job_no = ?1 AND generation = ?2 AND next_at = ?3 AND active = 1
  AND head_at IS ?4 AND head_sequence IS ?5
