DELETE FROM dead_letter
WHERE rowid IN (SELECT rowid FROM dead_letter WHERE died_at < ?1 ORDER BY died_at LIMIT ?2)
