-- Found by watch_at_risk.
SELECT w.job_no, j.id, coalesce(j.name, j.about::json ->> 'source_name'), w.reason, w.error_at, w.since
  FROM watch w JOIN job j USING (job_no)
 WHERE w.tenant_no = $1 AND w.level > 0 AND (w.error_at, w.job_no) > ($2::int8, $3::int8)
   AND ($4::int2 IS NULL OR w.level = $4)
 ORDER BY w.error_at, w.job_no OFFSET $5 LIMIT $6;
