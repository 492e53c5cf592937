-- What was not open when it came, or when it was opened again, is nobody's for now.
SELECT count(*) FROM (SELECT FROM ready WHERE pool = ANY ($1::text[]) AND open_from IS NULL LIMIT $2) AS waiting;
