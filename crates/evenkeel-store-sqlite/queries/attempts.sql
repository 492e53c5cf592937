-- Reads attempts; also holds fragments about attempts that other files use.

-- :fragment attempt_key
scheduled_at, job_no, sequence, attempt

-- :fragment this_run
scheduled_at = :scheduled_at AND job_no = :job_no AND sequence = :sequence

-- :fragment this_attempt
{this_run} AND attempt = :attempt

-- :fragment same_attempt
r.scheduled_at = l.scheduled_at AND r.job_no = l.job_no AND r.sequence = l.sequence
 AND r.attempt = l.attempt

-- :fragment short_attempt_columns
r.scheduled_at, r.job_no, r.sequence, r.attempt, r.status, r.fence, r.crashes, r.node_no,
       n.name AS node_name, r.number, r.started_at, r.finished_at, r.skipped_to, r.skipped_count,
       r.skip_reason, r.items_crawled, r.items_indexed, r.cpu_us, r.memory_kb

-- :fragment started_attempt_columns
{short_attempt_columns}, r.error

-- :fragment unstarted_attempt_columns
NULL AS node_no, NULL AS node_name, NULL AS number, NULL AS started_at,
       NULL AS finished_at, NULL AS skipped_to, NULL AS skipped_count, NULL AS skip_reason,
       NULL AS items_crawled, NULL AS items_indexed, NULL AS cpu_us, NULL AS memory_kb,
       NULL AS error, NULL AS output

-- :fragment started_attempts
-- CROSS JOIN keeps the order of the tables: the key of `attempt` is also the order of the result.
FROM attempt r CROSS JOIN job j ON j.job_no = r.job_no LEFT JOIN node n ON n.node_no = r.node_no

-- :fragment queued_attempts
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, {attempt.pending} AS status, r.fence,
       r.crashes, {unstarted_attempt_columns}, r.prev_at, r.prev_sequence, j.id
FROM ready r CROSS JOIN job j ON j.job_no = r.job_no

-- :name attempts_of_runs (scheduled_at, job_no, sequence, tenant_no, newest)
-- Of a run with many attempts, reads the first attempt and the newest ones.
SELECT {short_attempt_columns}, substr(r.error, 1, 4096) AS error, NULL AS output, j.id,
       NULL AS due
{started_attempts}
WHERE r.scheduled_at = :scheduled_at AND r.job_no = :job_no AND r.sequence = :sequence
  AND r.tenant_no = :tenant_no
  AND (r.attempt = 0 OR r.attempt IN (SELECT attempt FROM attempt
                                      WHERE {this_run}
                                      ORDER BY attempt DESC LIMIT :newest))

-- :name attempts_of_runs_waiting (scheduled_at, job_no, sequence, tenant_no)
-- An entry of the queue with a fence has a row in `attempt`.
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, {attempt.pending} AS status, r.fence,
       r.crashes, {unstarted_attempt_columns}, j.id, NULL AS due
FROM ready r CROSS JOIN job j ON j.job_no = r.job_no
WHERE r.scheduled_at = :scheduled_at AND r.job_no = :job_no AND r.sequence = :sequence
  AND r.tenant_no = :tenant_no AND r.fence = 0
UNION ALL
SELECT w.scheduled_at, w.job_no, w.sequence, w.attempt, {attempt.pending} AS status, 0 AS fence,
       0 AS crashes, {unstarted_attempt_columns}, j.id, w.due
FROM delayed_attempt w CROSS JOIN job j ON j.job_no = w.job_no
WHERE w.job_no = :job_no AND w.scheduled_at = :scheduled_at AND w.sequence = :sequence
  AND w.tenant_no = :tenant_no

-- :name get_attempt_note (scheduled_at, job_no, sequence, attempt, fence)
SELECT progress, log FROM note
WHERE {this_attempt} AND fence = :fence

-- :name get_attempt_delayed (scheduled_at, job_no, sequence, attempt, tenant_no)
-- The delayed attempt of a run with this number; with number 0, any delayed attempt of the run.
SELECT w.scheduled_at, w.job_no, w.sequence, w.attempt, {attempt.pending} AS status, 0 AS fence,
       0 AS crashes, {unstarted_attempt_columns}, j.id
FROM delayed_attempt w CROSS JOIN job j ON j.job_no = w.job_no
WHERE w.job_no = :job_no AND w.scheduled_at = :scheduled_at AND w.sequence = :sequence
  AND (w.attempt = :attempt OR :attempt = 0) AND w.tenant_no = :tenant_no
ORDER BY w.attempt DESC LIMIT 1

-- :name list_attempts (tenant_no, scheduled_at, job_no, sequence, attempt, limit)
SELECT {started_attempt_columns}, substr(r.output, 1, 65536) AS output, r.prev_at,
       r.prev_sequence, j.id
{started_attempts}
WHERE r.tenant_no = :tenant_no
  AND (r.scheduled_at, r.job_no, r.sequence, r.attempt) < (:scheduled_at, :job_no, :sequence, :attempt)
ORDER BY r.scheduled_at DESC, r.job_no DESC, r.sequence DESC, r.attempt DESC LIMIT :limit

-- :name list_attempts_links (scheduled_at, job_no, sequence)
SELECT attempt, status, node_no, prev_at, prev_sequence FROM attempt
WHERE {this_run}

-- :name list_attempts_before_cut
-- Retention may have deleted the link to an earlier run. No index leads to the runs before that
-- gap, so the statement reads at most ?3 rows of all jobs.
SELECT scheduled_at, sequence FROM (
    SELECT scheduled_at, job_no, sequence FROM attempt WHERE scheduled_at < ?1
    ORDER BY scheduled_at DESC, job_no DESC, sequence DESC, attempt DESC LIMIT ?3)
WHERE job_no = ?2 LIMIT 1

-- :name list_attempts_of_run (scheduled_at, job_no, sequence, tenant_no)
SELECT {started_attempt_columns}, r.output, r.prev_at, r.prev_sequence, j.id
{started_attempts}
WHERE r.scheduled_at = :scheduled_at AND r.job_no = :job_no AND r.sequence = :sequence
  AND r.tenant_no = :tenant_no
ORDER BY r.attempt DESC

-- :name list_attempts_count
-- Counts the first `?2` rows only, so that the time does not grow with the table.
SELECT count(*), coalesce(sum(tenant_no = ?1), 0) FROM (SELECT tenant_no FROM attempt LIMIT ?2)

-- :name list_attempts_count_ready
SELECT count(*) FROM (SELECT 1 FROM ready WHERE tenant_no = ?1 AND fence = 0 LIMIT ?2)

-- :name list_attempts_estimate
-- The attempts of a tenant that ever ended, from its one row of totals: the number of jobs does not
-- matter.
SELECT coalesce(sum(completed + failed + timed_out + cancelled), 0) FROM run_totals
WHERE tenant_no = ?1

-- :name list_attempts_job
SELECT j.job_no, s.head_at, s.head_sequence, s.executions
FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.id = ?2 AND j.tenant_no = ?1

-- :name list_attempts_kept (scheduled_at, job_no, tenant_no)
-- The newest success and the newest failure, which retention keeps even if the links to them are
-- deleted.
SELECT {started_attempt_columns}, substr(r.output, 1, 65536) AS output, r.prev_at,
       r.prev_sequence, j.id
{started_attempts}
WHERE r.tenant_no = :tenant_no AND r.job_no = :job_no
  AND r.scheduled_at IN (SELECT succeeded_at FROM job_state WHERE job_no = :job_no
                         UNION SELECT failed_at FROM job_state WHERE job_no = :job_no)
  AND r.scheduled_at < :scheduled_at
ORDER BY r.scheduled_at DESC, r.sequence DESC, r.attempt DESC

-- :name list_attempts_ready (tenant_no, scheduled_at, job_no, sequence, attempt, limit)
{queued_attempts}
-- An entry with a fence was returned to the queue and has a row in `attempt`.
WHERE r.tenant_no = :tenant_no AND r.fence = 0
  AND (r.scheduled_at, r.job_no, r.sequence, r.attempt) < (:scheduled_at, :job_no, :sequence, :attempt)
ORDER BY r.scheduled_at DESC, r.job_no DESC, r.sequence DESC, r.attempt DESC LIMIT :limit

-- :name list_attempts_ready_of_job
{queued_attempts}
WHERE r.tenant_no = ?1 AND r.job_no = ?2 AND r.fence = 0
ORDER BY r.scheduled_at DESC, r.sequence DESC, r.attempt DESC

-- :name recent_runs (tenant_no, jobs, each)
-- The newest runs of many jobs, along the links from each run to the previous run. The link is in
-- the first attempt of a run or, if that attempt was never claimed, in the queue.
WITH RECURSIVE linked_run(place, id, job_no, depth, at, sequence) AS (
    SELECT d.key, j.id, j.job_no, 1, s.head_at, s.head_sequence
      FROM json_each(:jobs) d CROSS JOIN job j ON j.id = unhex(d.value, '-')
           CROSS JOIN job_state s ON s.job_no = j.job_no
     WHERE j.tenant_no = :tenant_no AND j.state <> {job.deleted} AND s.head_at IS NOT NULL
       AND :each > 0
    UNION ALL
    SELECT c.place, c.id, c.job_no, c.depth + 1, p.prev_at, p.prev_sequence
      FROM linked_run c CROSS JOIN attempt p ON p.scheduled_at = c.at AND p.job_no = c.job_no
                                            AND p.sequence = c.sequence AND p.attempt = 0
     WHERE p.prev_at IS NOT NULL AND c.depth < :each
    UNION ALL
    SELECT c.place, c.id, c.job_no, c.depth + 1, q.prev_at, q.prev_sequence
      FROM linked_run c CROSS JOIN ready q ON q.scheduled_at = c.at AND q.job_no = c.job_no
                                          AND q.sequence = c.sequence AND q.attempt = 0
     -- An entry with a fence was returned to the queue and has a row in `attempt`.
     WHERE q.prev_at IS NOT NULL AND q.fence = 0 AND c.depth < :each
)
SELECT c.id, c.at AS scheduled_at, c.job_no, c.sequence, 0 AS attempt, f.started_at, l.finished_at,
       CASE WHEN EXISTS (SELECT 1 FROM ready q
                         WHERE q.scheduled_at = c.at AND q.job_no = c.job_no
                           AND q.sequence = c.sequence)
              OR EXISTS (SELECT 1 FROM delayed_attempt w
                         WHERE w.job_no = c.job_no AND w.scheduled_at = c.at
                           AND w.sequence = c.sequence)
            THEN {attempt.pending} ELSE l.status END AS newest_status
FROM linked_run c
     LEFT JOIN attempt f ON f.scheduled_at = c.at AND f.job_no = c.job_no
                        AND f.sequence = c.sequence AND f.attempt = 0
     LEFT JOIN attempt l ON l.scheduled_at = c.at AND l.job_no = c.job_no
                        AND l.sequence = c.sequence
                        AND l.attempt = (SELECT max(e.attempt) FROM attempt e
                                         WHERE e.scheduled_at = c.at AND e.job_no = c.job_no
                                           AND e.sequence = c.sequence)
WHERE newest_status IS NOT NULL
ORDER BY c.place, c.depth
