-- Which jobs count for less than four fifths or more than five quarters of what their runs take?
SELECT job_no, coalesce(rhythm, 0) <> 0 AND cost_stated = 0 AND average_us IS NOT NULL
       AND (cost_us * 5 < average_us * 4 OR cost_us * 4 > average_us * 5)
FROM job_state WHERE job_no > ?1 ORDER BY job_no LIMIT ?2
