SELECT rhythm, cost_us FROM job_state
WHERE job_no = ?1 AND tenant_no = ?2 AND active = 1 AND generation = ?3 AND next_at = ?4
  AND (?5 OR live = 0) AND (last_fired_at IS NULL OR last_fired_at < ?6)
