SELECT d.scheduled_at, d.job_no, d.sequence, d.attempt, j.id, j.name, d.died_at, d.reason, d.status,
       d.error, d.redriven_at, d.new_at, d.new_sequence
FROM dead_letter d JOIN job j ON j.job_no = d.job_no
WHERE d.tenant_no = ?1 AND d.job_no = ?2 AND d.scheduled_at = ?3 AND d.sequence = ?4
