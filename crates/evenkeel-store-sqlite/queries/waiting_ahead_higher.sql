SELECT count(*) FROM (
    SELECT 1 FROM ready
    WHERE pool = ?1 AND lane = ?2 AND priority >= ?4 AND open_from IS NULL LIMIT ?3)
