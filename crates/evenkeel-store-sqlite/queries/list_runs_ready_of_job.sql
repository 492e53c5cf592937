SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, 0 AS status, r.fence, r.crashes,
       NULL AS node_no, NULL AS node_name, NULL AS number, NULL AS started_at,
       NULL AS finished_at, NULL AS skipped_to, NULL AS skipped_count, NULL AS skip_reason,
       NULL AS items_crawled, NULL AS items_indexed, NULL AS cpu_us, NULL AS memory_kb,
       NULL AS error, NULL AS output, r.prev_at, r.prev_sequence, j.id
FROM ready r CROSS JOIN job j ON j.job_no = r.job_no
WHERE r.tenant_no = ?1 AND r.job_no = ?2 AND r.fence = 0
ORDER BY r.scheduled_at DESC, r.sequence DESC, r.attempt DESC
