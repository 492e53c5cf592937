UPDATE job_state
SET live = max(live - ?2, 0), last_status = CASE WHEN ?2 > 0 THEN ?3 ELSE last_status END
WHERE job_no = ?1
RETURNING live, head_at, head_sequence
