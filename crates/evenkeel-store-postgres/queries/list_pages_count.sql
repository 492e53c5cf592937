-- Counts the pages that fit, but not for ever.
SELECT count(*)
  FROM (SELECT FROM page p JOIN job j USING (job_no)
         WHERE p.tenant_no = $1 AND j.standing <> 3
           AND ($2::text IS NULL OR starts_with(p.url, $2))
         LIMIT $3) AS p;
