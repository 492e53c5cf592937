DELETE FROM request WHERE rowid IN (
    SELECT rowid FROM request WHERE begun_at < ?1 ORDER BY begun_at LIMIT ?2);
