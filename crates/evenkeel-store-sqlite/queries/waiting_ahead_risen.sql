-- Those that rank as high by their priority are met here, too. They are fewer than ?3, or else nobody
-- asks: so of twice as many the others are all, or enough.
SELECT count(*) FROM (
    SELECT priority FROM ready
    WHERE pool = ?1 AND lane = ?2 AND rise <= ?5 AND open_from IS NULL
    ORDER BY rise LIMIT 2 * ?3)
WHERE priority < ?4
