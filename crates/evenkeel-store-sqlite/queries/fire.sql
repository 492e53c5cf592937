-- Firing jobs at their scheduled times.

-- The compare-and-swap of firing a job.
-- :fragment fire_advance_set
next_at = :next_at, last_fired_at = coalesce(:last_fired_at, last_fired_at), head_at = :head_at,
    head_sequence = :head_sequence, live = live + :started, executions = executions + :claimed,
    fired = fired + :started

-- :fragment fire_advance_where
job_no = :job_no AND generation = :generation AND next_at = :due AND active = 1
  AND (:idle_only = 0 OR live = 0) AND head_at IS :known_head_at
  AND head_sequence IS :known_head_sequence

-- :name fire_advance (
--   job_no, generation, due, idle_only, next_at, last_fired_at, head_at, head_sequence, started,
--   claimed, known_head_at, known_head_sequence)
-- Does not set `slot`, because SQLite would write the index of that column even if the value stayed
-- the same.
UPDATE job_state
SET {fire_advance_set}
WHERE {fire_advance_where}

-- :name fire_advance_slot (
--   job_no, generation, due, idle_only, next_at, last_fired_at, head_at, head_sequence, started,
--   claimed, known_head_at, known_head_sequence, slot)
UPDATE job_state
SET {fire_advance_set}, slot = :slot
WHERE {fire_advance_where}

-- :name fire_classify (job_no, generation, due, head_at, head_sequence)
-- Returns a row only if the job has not changed since the scheduler decided to fire it. The value
-- is true if a delayed retry of the job is waiting.
SELECT EXISTS (SELECT 1 FROM delayed_attempt w WHERE w.job_no = s.job_no AND w.attempt > 0)
FROM job_state s
WHERE s.job_no = :job_no AND s.generation = :generation AND s.next_at = :due AND s.active = 1
  AND s.head_at IS :head_at AND s.head_sequence IS :head_sequence

-- :name fire_lower_watermark
UPDATE node SET low_watermark = ?2 WHERE node_no = ?1 AND low_watermark > ?2

-- :name fire_ready (
--   pool, lane, priority, should_start_by, since, scheduled_at, job_no, sequence, attempt, tenant_no,
--   fence, crashes, prev_at, prev_sequence, limit_key, open_from, open_until, forbidden_nodes,
--   own_priority, rise, limit_max)
INSERT INTO ready (pool, lane, priority, should_start_by, since, scheduled_at, job_no, sequence,
                   attempt, tenant_no, fence, crashes, prev_at, prev_sequence, limit_key,
                   open_from, open_until, forbidden_nodes, own_priority, rise, limit_max)
VALUES (:pool, :lane, :priority, :should_start_by, :since, :scheduled_at, :job_no, :sequence,
        :attempt, :tenant_no, :fence, :crashes, :prev_at, :prev_sequence, :limit_key,
        :open_from, :open_until, :forbidden_nodes, :own_priority, :rise, :limit_max)

-- :name fire_attempt (
--   scheduled_at, job_no, sequence, attempt, tenant_no, node_no, prev_at, prev_sequence, started_at,
--   priority)
INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, node_no,
                     prev_at, prev_sequence, number, started_at, priority)
VALUES (:scheduled_at, :job_no, :sequence, :attempt, :tenant_no, {attempt.running}, 1, :node_no,
        :prev_at, :prev_sequence, (SELECT executions FROM job_state WHERE job_no = :job_no),
        :started_at, :priority)

-- :name fire_skip (
--   scheduled_at, job_no, tenant_no, prev_at, prev_sequence, claimed, finished_at, skipped_to,
--   skipped_count, skip_reason)
-- A record of skipped runs has a number as attempts do, so that retention deletes both alike. The
-- job's count already includes an attempt that the same firing started.
INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence,
                     prev_at, prev_sequence, number, finished_at, skipped_to, skipped_count,
                     skip_reason)
VALUES (:scheduled_at, :job_no, 0, 0, :tenant_no, {attempt.skipped}, 0, :prev_at, :prev_sequence,
        (SELECT executions FROM job_state WHERE job_no = :job_no) - :claimed, :finished_at,
        :skipped_to, :skipped_count, :skip_reason)
