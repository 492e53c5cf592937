SELECT tenant_no, rhythm, cost_us, average_us FROM job_state
WHERE job_no = ?1 AND rhythm <> 0 AND cost_stated = 0
  AND (cost_us * 5 < average_us * 4 OR cost_us * 4 > average_us * 5)
