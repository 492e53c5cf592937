-- Which jobs count for less than four fifths or more than five quarters of what their runs take, 30 days
-- at most? And which count though they have no next time, which should not be?
SELECT job_no, coalesce(rhythm, 0) <> 0 AND (is_over OR (cost_stated = 0 AND takes_us IS NOT NULL
       AND (cost_us * 5 < takes_us * 4 OR cost_us * 4 > takes_us * 5)))
FROM (SELECT job_no, rhythm, cost_stated, cost_us, min(average_us, 2592000000000) AS takes_us,
             active = 0 OR next_at IS NULL AS is_over
      FROM job_state WHERE job_no > ?1 ORDER BY job_no LIMIT ?2)
ORDER BY job_no
