-- As it was looked at; what it takes is NULL if it has no next time.
SELECT tenant_no, rhythm, cost_us, CASE WHEN NOT is_over THEN takes_us END
FROM (SELECT tenant_no, rhythm, cost_us, cost_stated, min(average_us, 2592000000000) AS takes_us,
             active = 0 OR next_at IS NULL AS is_over
      FROM job_state WHERE job_no = ?1)
WHERE rhythm <> 0 AND (is_over OR (cost_stated = 0
  AND (cost_us * 5 < takes_us * 4 OR cost_us * 4 > takes_us * 5)))
