DELETE FROM failure WHERE rowid IN (
    SELECT rowid FROM failure WHERE last_at < ?1 ORDER BY last_at LIMIT ?2)
