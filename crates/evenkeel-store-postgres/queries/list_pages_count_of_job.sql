SELECT count(*)
  FROM (SELECT FROM page
         WHERE job_no = $1 AND ($2::text IS NULL OR starts_with(url, $2))
         LIMIT $3) AS p;
