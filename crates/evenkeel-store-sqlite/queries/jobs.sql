-- Reads jobs; also holds fragments about jobs that other files use.

-- :fragment history_columns
s.failures, s.last_start_at, s.last_end_at, s.last_good_start_at, s.last_good_end_at,
       s.average_us, s.variance

-- :fragment job_row
SELECT j.job_no, j.id, j.tenant_no, j.about, j.definition, j.state, j.created_at, j.updated_at,
       s.generation, s.next_at, s.last_fired_at, s.live, s.executions, s.last_status,
       {history_columns}, coalesce(s.placed_at, j.created_at) AS since, s.fired,
       s.head_at, s.head_sequence, s.stopped_at, s.succeeded_runs, s.failed_runs, s.failed_at,
       j.number, j.target_no, j.note,
       (SELECT count(*) FROM ready r WHERE r.job_no = j.job_no)
           + (SELECT count(*) FROM delayed_attempt w WHERE w.job_no = j.job_no) AS waiting
FROM job j JOIN job_state s ON s.job_no = j.job_no

-- :name get_jobs
{job_row}
WHERE j.id = ?2 AND j.tenant_no = ?1 AND j.state <> {job.deleted}

-- :name get_jobs_last_error
SELECT substr(error, 1, ?3) FROM attempt
WHERE scheduled_at = ?1 AND job_no = ?2 AND status IN ({attempts.failed})
ORDER BY sequence DESC, attempt DESC LIMIT 1

-- :name get_jobs_newest_waiting
SELECT {attempt_key} FROM ready WHERE job_no = ?1
UNION ALL
SELECT {attempt_key} FROM delayed_attempt WHERE job_no = ?1
ORDER BY scheduled_at DESC, sequence DESC, attempt DESC LIMIT 1

-- :name get_jobs_running (scheduled_at, job_no, sequence)
-- The newest attempt of a run. An attempt that no worker has claimed yet gets the status `skipped`,
-- because the caller then looks at the previous run, as it does after a record of skipped runs.
SELECT attempt, status, started_at, prev_at, prev_sequence FROM (
    SELECT attempt, status, started_at, prev_at, prev_sequence FROM attempt
    WHERE {this_run}
    ORDER BY attempt DESC LIMIT 1)
UNION ALL
SELECT attempt, {attempt.skipped}, NULL, prev_at, prev_sequence FROM ready
WHERE {this_run} AND attempt = 0
  AND NOT EXISTS (SELECT 1 FROM attempt WHERE {this_run})

-- :name find_job_no
SELECT job_no FROM job WHERE id = ?2 AND tenant_no = ?1 AND state <> {job.deleted}

-- :name find_job_head
SELECT next_at, live, head_at, head_sequence FROM job_state WHERE job_no = ?1

-- :name set_job_head
UPDATE job_state SET head_at = ?2, head_sequence = ?3 WHERE job_no = ?1

-- :name ids_of_numbers
SELECT id FROM job WHERE tenant_no = ?1 AND number = ?2 AND state <> {job.deleted}

-- :name job_titles
SELECT id, name, about ->> '$.source_name' FROM job WHERE job_no = ?1

-- :name jobs_named
SELECT id, nullif(configuration, '') FROM job
WHERE tenant_no = ?1 AND name = ?2 AND state <> {job.deleted}
ORDER BY configuration
LIMIT ?3

-- :name slot_loads
-- Reads ?3 jobs of the time slot from all tenants, because the limit applies before the filter by
-- tenant. One job more than needed shows whether these were all.
WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
SELECT count(*) FILTER (WHERE nth <= ?3 AND tenant_no = ?1 AND active = 1) AS jobs,
       count(*) <= ?3 AS counted_all
FROM (
    SELECT tenant_no, active, row_number() OVER () AS nth
    FROM (
        SELECT s.tenant_no, s.active
        FROM shard CROSS JOIN job_state s ON s.shard = shard.no AND s.slot = ?2
        LIMIT ?3 + 1))
