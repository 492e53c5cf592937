-- Commands on jobs: pause, resume, cancel, change, delete.

-- :name command_follows_end
UPDATE job_state SET follows_end = ?2 WHERE job_no = ?1

-- :name command_cancel_running (node_no, scheduled_at, job_no, sequence, attempt, superseded)
INSERT INTO cancellation (node_no, scheduled_at, job_no, sequence, attempt, superseded)
VALUES (:node_no, :scheduled_at, :job_no, :sequence, :attempt, :superseded) ON CONFLICT DO NOTHING

-- :name command_change_job (job_no, name, configuration, source_id, about, definition)
UPDATE job
SET name = :name, configuration = :configuration, source_id = :source_id, about = :about,
    definition = :definition
WHERE job_no = :job_no

-- :name command_close_runs
UPDATE job_state
SET live = max(live - ?2, 0), last_status = CASE WHEN ?2 > 0 THEN ?3 ELSE last_status END
WHERE job_no = ?1

-- :name command_count (tenant_no, deleted, paused, cancelled)
UPDATE tenant
SET job_count = job_count - :deleted, paused = paused + :paused, cancelled = cancelled + :cancelled
WHERE tenant_no = :tenant_no

-- :name command_find_long_attempts
SELECT l.node_no, l.scheduled_at, l.job_no, l.sequence, l.attempt FROM long_attempt l
JOIN attempt r ON {same_attempt}
WHERE l.job_no = ?1 AND r.node_no = l.node_no AND r.status = {attempt.running}

-- :name command_find_running (scheduled_at, job_no, sequence)
-- The attempts of a run. If the first attempt was never claimed, the link to the previous run is in
-- the queue.
SELECT attempt, status, node_no, prev_at, prev_sequence FROM attempt
WHERE {this_run}
UNION ALL
SELECT attempt, {attempt.pending}, NULL, prev_at, prev_sequence FROM ready
WHERE {this_run}

-- :name command_delete_condition
DELETE FROM job_condition WHERE job_no = ?1 RETURNING tenant_no, level

-- :name command_job (job_no, state, updated_at, note)
-- A command that does not change the state keeps the note.
UPDATE job
SET note = CASE WHEN state = :state THEN note ELSE :note END, state = :state,
    updated_at = :updated_at
WHERE job_no = :job_no

-- :name command_job_state
-- A job that is not active has no next run time.
UPDATE job_state
SET generation = generation + 1, active = ?2, stopped_at = ?3,
    next_at = CASE WHEN ?2 THEN next_at END, slot = CASE WHEN ?2 THEN slot END
WHERE job_no = ?1

-- :name command_leave_targets
-- Saves the job's last success in its target, before the job changes or loses the target.
UPDATE target
SET last_success_at = max(coalesce(target.last_success_at, 0), s.last_good_end_at)
FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.job_no = ?1 AND target.tenant_no = j.tenant_no AND target.number = j.target_no
  AND s.last_good_end_at > coalesce(j.target_since, 0)

-- :name command_drop_dedup
DELETE FROM dedup_key WHERE tenant_no = ?1 AND key = ?2 AND job_no = ?3

-- :name command_name_target
UPDATE job SET target_no = ?2, target_since = ?3 WHERE job_no = ?1

-- :name command_open_ready (
--   job_no, open_from, open_until, forbidden_nodes, priority, limit_key, limit_max)
-- A separate priority of the run stays; otherwise the job's new priority applies, and the waiting
-- time so far still counts. The right-hand sides of the assignments refer to the old values. An
-- attempt in a limit queue returns to its pool, because its key may have changed.
UPDATE ready
SET open_from = :open_from, open_until = :open_until, forbidden_nodes = :forbidden_nodes,
    rise = CASE WHEN own_priority THEN rise ELSE rise + priority - :priority END,
    priority = CASE WHEN own_priority THEN priority ELSE :priority END,
    limit_key = :limit_key, limit_max = :limit_max,
    pool = coalesce(home_pool, pool), home_pool = NULL, limited_by_max = NULL
WHERE job_no = :job_no

-- :name command_place (job_no, next_at, slot, placed_at)
UPDATE job_state SET next_at = :next_at, slot = :slot, placed_at = :placed_at WHERE job_no = :job_no

-- :name command_record_withdrawn (
--   scheduled_at, job_no, sequence, attempt, tenant_no, prev_at, prev_sequence, finished_at, status)
-- An attempt that was returned to the queue has a row; an attempt that never started gets a row.
INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence,
                     prev_at, prev_sequence, number, finished_at)
VALUES (:scheduled_at, :job_no, :sequence, :attempt, :tenant_no, :status, 0, :prev_at, :prev_sequence,
        (SELECT executions FROM job_state WHERE job_no = :job_no), :finished_at)
ON CONFLICT DO UPDATE SET status = excluded.status, finished_at = excluded.finished_at

-- :name command_withdraw_ready
DELETE FROM ready WHERE job_no = ?1
RETURNING {attempt_key}, tenant_no, prev_at, prev_sequence

-- :name command_withdraw_delayed
DELETE FROM delayed_attempt WHERE job_no = ?1
RETURNING {attempt_key}, tenant_no
