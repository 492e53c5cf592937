SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.status, r.fence, r.crashes, r.node_no,
       n.name AS node_name, r.number, r.started_at, r.finished_at, r.skipped_to, r.skipped_count,
       r.skip_reason, r.items_crawled, r.items_indexed, r.cpu_us, r.memory_kb, r.error,
       substr(r.output, 1, 65536) AS output,
       r.prev_at, r.prev_sequence, j.id
-- CROSS keeps the order of the tables: the key of run is also the order of the answer.
FROM run r CROSS JOIN job j ON j.job_no = r.job_no LEFT JOIN node n ON n.node_no = r.node_no
WHERE r.tenant_no = ?1 AND (r.scheduled_at, r.job_no, r.sequence, r.attempt) < (?2, ?3, ?4, ?5)
ORDER BY r.scheduled_at DESC, r.job_no DESC, r.sequence DESC, r.attempt DESC LIMIT ?6
