SELECT scheduled_at, job_no, sequence, attempt FROM ready WHERE job_no = ?1
UNION ALL
SELECT scheduled_at, job_no, sequence, attempt FROM wake WHERE job_no = ?1
ORDER BY scheduled_at DESC, sequence DESC, attempt DESC LIMIT 1
