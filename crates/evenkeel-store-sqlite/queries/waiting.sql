-- What was not open when it came, or when it was opened again, is nobody's for now.
SELECT count(*) FROM (SELECT 1 FROM ready WHERE pool = ?1 AND open_from IS NULL LIMIT ?2)
