-- The attempt of a run that waits for its time: the one asked for, or for attempt 0 any.
SELECT w.scheduled_at, w.job_no, w.sequence, w.attempt, 0 AS status, 0 AS fence, 0 AS crashes,
       NULL AS node_no, NULL AS node_name, NULL AS number, NULL AS started_at,
       NULL AS finished_at, NULL AS skipped_to, NULL AS skipped_count, NULL AS skip_reason,
       NULL AS items_crawled, NULL AS items_indexed, NULL AS cpu_us, NULL AS memory_kb,
       NULL AS error, NULL AS output, j.id
FROM wake w CROSS JOIN job j ON j.job_no = w.job_no
WHERE w.job_no = ?2 AND w.scheduled_at = ?1 AND w.sequence = ?3 AND (w.attempt = ?4 OR ?4 = 0)
  AND w.tenant_no = ?5
ORDER BY w.attempt DESC LIMIT 1
