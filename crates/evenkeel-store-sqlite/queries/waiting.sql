SELECT count(*) FROM (SELECT 1 FROM ready WHERE pool = ?1 LIMIT ?2)
