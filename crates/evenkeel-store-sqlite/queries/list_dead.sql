SELECT d.scheduled_at, d.job_no, d.sequence, d.attempt, j.id, j.name, d.died_at, d.reason, d.status,
       d.error, d.redriven_at, d.new_at, d.new_sequence
FROM dead_letter d JOIN job j ON j.job_no = d.job_no
WHERE d.tenant_no = ?1 AND (d.died_at, d.scheduled_at, d.job_no, d.sequence) < (?2, ?3, ?4, ?5)
  AND (?6 IS NULL OR d.job_no = (SELECT job_no FROM job WHERE id = ?6))
  AND (?7 IS NULL OR (d.redriven_at IS NOT NULL) = ?7)
ORDER BY d.died_at DESC, d.scheduled_at DESC, d.job_no DESC, d.sequence DESC LIMIT ?8 OFFSET ?9
