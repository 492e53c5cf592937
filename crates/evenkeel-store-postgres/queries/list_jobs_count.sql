-- Counts the jobs that fit, but not for ever.
SELECT count(*)
  FROM (SELECT FROM job
         WHERE tenant_no = $1 AND standing <> 3
           AND ($2::text IS NULL OR starts_with(name, $2)) AND ($3::text IS NULL OR source_id = $3)
         LIMIT $4) AS j;
