SELECT count(*) FROM place WHERE key = ?1
