SELECT count(*) FROM (SELECT FROM ready WHERE pool = ANY ($1::text[]) LIMIT $2) AS waiting;
