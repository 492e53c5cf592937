-- Jobs of a tenant are about to name other targets, or none: what they ended well for these stays
-- with them.
WITH left_behind AS MATERIALIZED (
    SELECT j.target_no AS number, max(s.last_good_end_at) AS at
      FROM job j JOIN job_state s USING (job_no)
     WHERE j.job_no = ANY ($2::int8[]) AND j.target_no IS NOT NULL
       AND s.last_good_end_at > coalesce(j.target_since, 0)
     GROUP BY j.target_no
), locked AS MATERIALIZED (
    SELECT t.number, l.at FROM target t JOIN left_behind l USING (number)
     WHERE t.tenant_no = $1 ORDER BY t.number FOR NO KEY UPDATE OF t
)
UPDATE target t SET last_success_at = greatest(t.last_success_at, l.at)
  FROM locked l WHERE t.tenant_no = $1 AND t.number = l.number;
