-- Commands on jobs: pause, resume, cancel, change, delete.

-- :name command_by_end
UPDATE job_state SET follows_end = ?2 WHERE job_no = ?1

-- :name command_cancel_running
INSERT INTO cancellation (node_no, scheduled_at, job_no, sequence, attempt, superseded)
VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING

-- :name command_change_job
UPDATE job SET name = ?2, configuration = ?3, source_id = ?4, about = ?5, definition = ?6
WHERE job_no = ?1

-- :name command_close_runs
UPDATE job_state
SET live = max(live - ?2, 0), last_status = CASE WHEN ?2 > 0 THEN ?3 ELSE last_status END
WHERE job_no = ?1
RETURNING live, head_at, head_sequence

-- :name command_count
UPDATE tenant SET job_count = job_count - ?2, paused = paused + ?3, cancelled = cancelled + ?4
WHERE tenant_no = ?1

-- :name command_find_long_runs
SELECT l.node_no, l.scheduled_at, l.job_no, l.sequence, l.attempt FROM long_attempt l
JOIN attempt r ON r.scheduled_at = l.scheduled_at AND r.job_no = l.job_no
          AND r.sequence = l.sequence AND r.attempt = l.attempt
WHERE l.job_no = ?1 AND r.node_no = l.node_no AND r.status = 1

-- :name command_find_running
-- The attempts of a chain. One that waits for its first worker has its link in the queue.
SELECT attempt, status, node_no, prev_at, prev_sequence FROM attempt
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3
UNION ALL
SELECT attempt, 0, NULL, prev_at, prev_sequence FROM ready
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3

-- :name command_delete_watch
DELETE FROM job_condition WHERE job_no = ?1 RETURNING tenant_no, level

-- :name command_job
-- A note stays as long as the job stands so.
UPDATE job SET note = CASE WHEN state = ?2 THEN note ELSE ?4 END, state = ?2, updated_at = ?3
WHERE job_no = ?1

-- :name command_job_state
-- A job that stops has no next time, whatever it had.
UPDATE job_state
SET generation = generation + 1, active = ?2, stopped_at = ?3,
    next_at = CASE WHEN ?2 THEN next_at END, slot = CASE WHEN ?2 THEN slot END
WHERE job_no = ?1

-- :name command_leave_target
-- A job is about to name another target, or none: what it ended well for this one stays with it.
UPDATE target
SET last_success_at = max(coalesce(target.last_success_at, 0), s.last_good_end_at)
FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.job_no = ?1 AND target.tenant_no = j.tenant_no AND target.number = j.target_no
  AND s.last_good_end_at > coalesce(j.target_since, 0)

-- :name command_drop_dedup
DELETE FROM dedup_key WHERE tenant_no = ?1 AND key = ?2 AND job_no = ?3

-- :name command_name_target
UPDATE job SET target_no = ?2, target_since = ?3 WHERE job_no = ?1

-- :name command_open_ready
-- A priority that a run was given is its own; another one changes with its job, and what was waited
-- stays. The right sides are what was there before. What waits for a place goes back into its pool:
-- it may have another key now, or none.
UPDATE ready
SET open_from = ?2, open_until = ?3, forbidden_nodes = ?4,
    rise = CASE WHEN own_priority THEN rise ELSE rise + priority - ?5 END,
    priority = CASE WHEN own_priority THEN priority ELSE ?5 END,
    limit_key = ?6, limit_max = ?7,
    pool = coalesce(home_pool, pool), home_pool = NULL, limited_by_max = NULL
WHERE job_no = ?1

-- :name command_place
UPDATE job_state SET next_at = ?2, slot = ?3, placed_at = ?4 WHERE job_no = ?1

-- :name command_record_withdrawn
-- An attempt that was handed back has a row already; one that never started gets its first.
INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence,
                 prev_at, prev_sequence, number, finished_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?9, 0, ?6, ?7,
        (SELECT executions FROM job_state WHERE job_no = ?2), ?8)
ON CONFLICT DO UPDATE SET status = excluded.status, finished_at = excluded.finished_at

-- :name command_unmark_at_risk
UPDATE job_state SET has_condition = 0 WHERE job_no = ?1

-- :name command_withdraw_ready
DELETE FROM ready WHERE job_no = ?1
RETURNING scheduled_at, job_no, sequence, attempt, tenant_no, prev_at, prev_sequence

-- :name command_withdraw_delayed
DELETE FROM delayed_attempt WHERE job_no = ?1
RETURNING scheduled_at, job_no, sequence, attempt, tenant_no
