-- Reading attempts and lists of attempts.

-- :name get_attempt_note
SELECT progress, log FROM note
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4 AND fence = ?5

-- :name get_attempt_delayed
-- The attempt of a run that waits for its time: the one asked for, or for attempt 0 any.
SELECT w.scheduled_at, w.job_no, w.sequence, w.attempt, 0 AS status, 0 AS fence, 0 AS crashes,
       NULL AS node_no, NULL AS node_name, NULL AS number, NULL AS started_at,
       NULL AS finished_at, NULL AS skipped_to, NULL AS skipped_count, NULL AS skip_reason,
       NULL AS items_crawled, NULL AS items_indexed, NULL AS cpu_us, NULL AS memory_kb,
       NULL AS error, NULL AS output, j.id
FROM delayed_attempt w CROSS JOIN job j ON j.job_no = w.job_no
WHERE w.job_no = ?2 AND w.scheduled_at = ?1 AND w.sequence = ?3 AND (w.attempt = ?4 OR ?4 = 0)
  AND w.tenant_no = ?5
ORDER BY w.attempt DESC LIMIT 1

-- :name list_attempts
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.status, r.fence, r.crashes, r.node_no,
       n.name AS node_name, r.number, r.started_at, r.finished_at, r.skipped_to, r.skipped_count,
       r.skip_reason, r.items_crawled, r.items_indexed, r.cpu_us, r.memory_kb, r.error,
       substr(r.output, 1, 65536) AS output,
       r.prev_at, r.prev_sequence, j.id
-- CROSS keeps the order of the tables: the key of run is also the order of the answer.
FROM attempt r CROSS JOIN job j ON j.job_no = r.job_no LEFT JOIN node n ON n.node_no = r.node_no
WHERE r.tenant_no = ?1 AND (r.scheduled_at, r.job_no, r.sequence, r.attempt) < (?2, ?3, ?4, ?5)
ORDER BY r.scheduled_at DESC, r.job_no DESC, r.sequence DESC, r.attempt DESC LIMIT ?6

-- :name list_attempts_attempts
SELECT attempt, status, node_no, prev_at, prev_sequence FROM attempt
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3

-- :name list_attempts_before_cut
-- Retention may have cut a link. What is left before the cut is looked for among so many rows,
-- since there is no index for it.
SELECT scheduled_at, sequence FROM (
    SELECT scheduled_at, job_no, sequence FROM attempt WHERE scheduled_at < ?1
    ORDER BY scheduled_at DESC, job_no DESC, sequence DESC, attempt DESC LIMIT ?3)
WHERE job_no = ?2 LIMIT 1

-- :name list_attempts_run
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.status, r.fence, r.crashes, r.node_no,
       n.name AS node_name, r.number, r.started_at, r.finished_at, r.skipped_to, r.skipped_count,
       r.skip_reason, r.items_crawled, r.items_indexed, r.cpu_us, r.memory_kb, r.error, r.output,
       r.prev_at, r.prev_sequence, j.id
-- CROSS keeps the order of the tables: the key of run is also the order of the answer.
FROM attempt r CROSS JOIN job j ON j.job_no = r.job_no LEFT JOIN node n ON n.node_no = r.node_no
WHERE r.scheduled_at = ?1 AND r.job_no = ?2 AND r.sequence = ?3 AND r.tenant_no = ?4
ORDER BY r.attempt DESC

-- :name list_attempts_count
-- Of the first rows only, so that it stays quick however many there are.
SELECT count(*), coalesce(sum(tenant_no = ?1), 0) FROM (SELECT tenant_no FROM attempt LIMIT ?2)

-- :name list_attempts_count_ready
SELECT count(*) FROM (SELECT 1 FROM ready WHERE tenant_no = ?1 AND fence = 0 LIMIT ?2)

-- :name list_attempts_estimate
SELECT coalesce(sum(executions), 0) FROM job_state WHERE tenant_no = ?1

-- :name list_attempts_job
SELECT j.job_no, s.head_at, s.head_sequence, s.executions
FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.id = ?2 AND j.tenant_no = ?1

-- :name list_attempts_kept
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.status, r.fence, r.crashes, r.node_no,
       n.name AS node_name, r.number, r.started_at, r.finished_at, r.skipped_to, r.skipped_count,
       r.skip_reason, r.items_crawled, r.items_indexed, r.cpu_us, r.memory_kb, r.error,
       substr(r.output, 1, 65536) AS output,
       r.prev_at, r.prev_sequence, j.id
-- CROSS keeps the order of the tables: the key of run is also the order of the answer.
FROM attempt r CROSS JOIN job j ON j.job_no = r.job_no LEFT JOIN node n ON n.node_no = r.node_no
WHERE r.tenant_no = ?3 AND r.job_no = ?2
  -- What retention keeps of the past may be cut off from the chains before it.
  AND r.scheduled_at IN (SELECT succeeded_at FROM job_state WHERE job_no = ?2
                         UNION SELECT failed_at FROM job_state WHERE job_no = ?2)
  AND r.scheduled_at < ?1
ORDER BY r.scheduled_at DESC, r.sequence DESC, r.attempt DESC

-- :name list_attempts_ready
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, 0 AS status, r.fence, r.crashes,
       NULL AS node_no, NULL AS node_name, NULL AS number, NULL AS started_at,
       NULL AS finished_at, NULL AS skipped_to, NULL AS skipped_count, NULL AS skip_reason,
       NULL AS items_crawled, NULL AS items_indexed, NULL AS cpu_us, NULL AS memory_kb,
       NULL AS error, NULL AS output, r.prev_at, r.prev_sequence, j.id
FROM ready r CROSS JOIN job j ON j.job_no = r.job_no
-- One with a fence was handed back and has its row in run.
WHERE r.tenant_no = ?1 AND r.fence = 0
  AND (r.scheduled_at, r.job_no, r.sequence, r.attempt) < (?2, ?3, ?4, ?5)
ORDER BY r.scheduled_at DESC, r.job_no DESC, r.sequence DESC, r.attempt DESC LIMIT ?6

-- :name list_attempts_ready_of_job
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, 0 AS status, r.fence, r.crashes,
       NULL AS node_no, NULL AS node_name, NULL AS number, NULL AS started_at,
       NULL AS finished_at, NULL AS skipped_to, NULL AS skipped_count, NULL AS skip_reason,
       NULL AS items_crawled, NULL AS items_indexed, NULL AS cpu_us, NULL AS memory_kb,
       NULL AS error, NULL AS output, r.prev_at, r.prev_sequence, j.id
FROM ready r CROSS JOIN job j ON j.job_no = r.job_no
WHERE r.tenant_no = ?1 AND r.job_no = ?2 AND r.fence = 0
ORDER BY r.scheduled_at DESC, r.sequence DESC, r.attempt DESC
