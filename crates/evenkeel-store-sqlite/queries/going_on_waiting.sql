SELECT scheduled_at, job_no, sequence, attempt,
       CASE WHEN own_priority THEN priority END AS priority
FROM ready WHERE job_no = ?1
UNION ALL
SELECT scheduled_at, job_no, sequence, attempt, priority FROM wake WHERE job_no = ?1
ORDER BY scheduled_at, sequence, attempt LIMIT ?2
