-- Firing regular times.

-- :name fire_advance
-- The compare-and-swap. `slot` is left alone: whatever stands in SET is written to its index.
UPDATE job_state
SET next_at = ?5, last_fired_at = coalesce(?6, last_fired_at), head_at = ?7, head_sequence = ?8,
    live = live + ?9, executions = executions + ?10, fired = fired + ?9
WHERE job_no = ?1 AND generation = ?2 AND next_at = ?3 AND active = 1 AND (?4 = 0 OR live = 0)
  AND head_at IS ?11 AND head_sequence IS ?12

-- :name fire_advance_slot
-- `fire_advance` for a job whose next time lies in another slot.
UPDATE job_state
SET next_at = ?5, last_fired_at = coalesce(?6, last_fired_at), head_at = ?7, head_sequence = ?8,
    live = live + ?9, executions = executions + ?10, fired = fired + ?9, slot = ?13
WHERE job_no = ?1 AND generation = ?2 AND next_at = ?3 AND active = 1 AND (?4 = 0 OR live = 0)
  AND head_at IS ?11 AND head_sequence IS ?12

-- :name fire_classify
-- Is the job still as decided on? And if so, does a retry of it wait for its time?
SELECT EXISTS (SELECT 1 FROM delayed_attempt w WHERE w.job_no = s.job_no AND w.attempt > 0)
FROM job_state s
WHERE s.job_no = ?1 AND s.generation = ?2 AND s.next_at = ?3 AND s.active = 1
  AND s.head_at IS ?4 AND s.head_sequence IS ?5

-- :name fire_lower_oldest_open
UPDATE node SET low_watermark = ?2 WHERE node_no = ?1 AND low_watermark > ?2

-- :name fire_ready
INSERT INTO ready (pool, lane, priority, should_start_by, since, scheduled_at, job_no, sequence,
                   attempt, tenant_no, fence, crashes, prev_at, prev_sequence, limit_key,
                   open_from, open_until, forbidden_nodes, own_priority, rise,
                   limit_max)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
        ?19, ?20, ?21)

-- :name fire_run
INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, node_no,
                 prev_at, prev_sequence, number, started_at, priority)
VALUES (?1, ?2, ?3, ?4, ?5, 1, 1, ?6, ?7, ?8,
        (SELECT executions FROM job_state WHERE job_no = ?2), ?9, ?10)

-- :name fire_skip
-- It is no attempt, but its number lets it grow old with them.
INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence,
                 prev_at, prev_sequence, number, finished_at, skipped_to, skipped_count, skip_reason)
VALUES (?1, ?2, 0, 0, ?3, 6, 0, ?4, ?5,
        -- The job is advanced already: an attempt that was started with this is not counted yet.
        (SELECT executions FROM job_state WHERE job_no = ?2) - ?6, ?7, ?8, ?9, ?10)
