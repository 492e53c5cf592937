DELETE FROM letter
WHERE letter_no IN (SELECT letter_no FROM letter WHERE node_no = ?1 ORDER BY letter_no LIMIT ?2)
RETURNING letter_no, scheduled_at, job_no, sequence, attempt, fence, word
