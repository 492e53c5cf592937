DELETE FROM dead_letter
WHERE rowid IN (SELECT rowid FROM dead_letter WHERE job_no = ?1 LIMIT ?2)
