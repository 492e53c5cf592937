SELECT count(*)
  FROM (SELECT FROM dead_letter d
         WHERE d.tenant_no = $1
           AND ($2::uuid IS NULL OR d.job_no = (SELECT job_no FROM job WHERE id = $2))
           AND ($3::bool IS NULL OR (d.redriven_at IS NOT NULL) = $3)
         LIMIT $4) AS counted;
