SELECT f.scheduled_at, f.job_no, f.sequence, f.attempt, f.fingerprint, f.count, f.first_at, f.last_at,
       f.error, j.id, j.name
  FROM failure f LEFT JOIN job j ON j.job_no = f.job_no AND j.tenant_no = $1 AND j.standing <> 3
 WHERE f.tenant_no = $1 AND (f.last_at, f.fingerprint) < ($2::int8, $3::int8)
 ORDER BY f.last_at DESC, f.fingerprint DESC OFFSET $4 LIMIT $5;
