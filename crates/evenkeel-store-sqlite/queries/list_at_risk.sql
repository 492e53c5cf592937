SELECT w.job_no, w.error_at, w.reason, w.since, j.id,
  coalesce(j.name, j.about ->> 'source_name') AS name
FROM watch w CROSS JOIN job j ON j.job_no = w.job_no
WHERE w.tenant_no = ?1 AND w.level > 0 AND (w.error_at, w.job_no) > (?2, ?3)
  AND (?4 IS NULL OR w.level = ?4)
ORDER BY w.error_at, w.job_no LIMIT ?5 OFFSET ?6
