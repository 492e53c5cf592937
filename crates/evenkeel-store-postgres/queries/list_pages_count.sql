-- Counts the pages that fit, but not for ever.
SELECT count(*)
  FROM (SELECT FROM page p JOIN job j USING (job_no)
         WHERE p.tenant_no = $1 AND j.standing <> 3
           AND ($2::int8 IS NULL OR p.job_no = $2) AND ($3::text IS NULL OR starts_with(p.url, $3))
         LIMIT $4) AS p;
