SELECT due, scheduled_at, job_no, sequence, attempt FROM wake
WHERE shard = ?1 AND due <= ?2
ORDER BY due, scheduled_at, job_no, sequence, attempt LIMIT ?3
