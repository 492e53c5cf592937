-- Firing jobs at their scheduled times.

-- :fragment new_ready_columns
pool, lane, priority, should_start_by, since, scheduled_at, job_no, sequence, attempt,
                       tenant_no, prev_at, prev_sequence, limit_key, open_from, open_until,
                       forbidden_nodes, own_priority, rise, limit_max

-- :fragment alive_node
-- The lock only prevents the node from being declared dead. So everything this transaction commits
-- is visible before another node searches for the attempts of a dead node.
SELECT low_watermark FROM node WHERE node_no = :node AND state = {node.live} FOR KEY SHARE

-- :fragment lower_watermark
-- When the node dies, attempts with a scheduled time before its low watermark would not be found.
UPDATE node SET low_watermark = least(low_watermark, earliest),
                    reached_back_to = least(reached_back_to, earliest)

-- :name fire (
--   now, node, job_no, generation, due, head_at, head_sequence, next_at, slot, idle_only,
--   start_at, skip_from, skip_to, skip_count, skip_reason, pool, lane, priority, should_start_by,
--   limit_key, open_from, open_until, forbidden_nodes, own_priority, since, rise, limit_max
-- )
-- Fires any batch: each job starts a claimed or a queued attempt, skips runs, or does both. A job
-- without a next run time is no longer counted in load_profile. PostgreSQL runs the first
-- data-modifying statement of a WITH last, so this count is written last although it comes first
-- here.
WITH clock AS MATERIALIZED (SELECT {clock} AS now), alive AS MATERIALIZED (
    {alive_node}
), fired AS (
    UPDATE job_state s
       SET next_at = d.next_at, slot = d.slot,
           last_fired_at = greatest(s.last_fired_at, d.start_at, d.skip_to),
           head_at = coalesce(d.start_at, d.skip_from, s.head_at),
           head_sequence = CASE WHEN coalesce(d.start_at, d.skip_from) IS NULL
                                THEN s.head_sequence ELSE 0 END,
           live = s.live + (d.start_at IS NOT NULL)::int4,
           executions = s.executions + (d.start_at IS NOT NULL AND d.pool IS NULL)::int4,
           fired = s.fired + (d.start_at IS NOT NULL)::int4,
           counted = s.counted AND d.next_at IS NOT NULL
      FROM unnest(:job_no::int8[], :generation::int4[], :due::int8[], :head_at::int8[],
                  :head_sequence::int4[], :next_at::int8[],
                  :slot::int4[], :idle_only::bool[], :start_at::int8[], :skip_from::int8[],
                  :skip_to::int8[], :skip_count::int8[],
                  :skip_reason::int2[], :pool::text[], :lane::int2[], :priority::int2[],
                  :should_start_by::int8[],
                  :limit_key::bytea[], :open_from::int8[], :open_until::int8[],
                  :forbidden_nodes::text[], :own_priority::bool[],
                  :since::int8[], :rise::int8[], :limit_max::int4[])
           AS d(job_no, generation, due, head_at, head_sequence, next_at, slot, idle_only,
                start_at, skip_from, skip_to, skip_count, skip_reason, pool, lane, priority,
                should_start_by, limit_key, open_from, open_until, forbidden_nodes,
                own_priority, since, rise, limit_max)
     WHERE s.job_no = d.job_no AND s.next_at = d.due AND s.generation = d.generation AND s.active
       AND s.head_at IS NOT DISTINCT FROM d.head_at
       AND s.head_sequence IS NOT DISTINCT FROM d.head_sequence
       AND (s.live = 0 OR NOT d.idle_only)
       AND greatest(d.due, d.start_at) <= (SELECT now FROM clock) AND EXISTS (SELECT FROM alive)
 RETURNING s.tenant_no, s.executions, s.load_profile, s.cost_us, d.*,
           -- the run before the started run, which is the record of skipped runs if there is one
           coalesce(d.skip_from, d.head_at) AS before_at,
           CASE WHEN d.skip_from IS NULL THEN d.head_sequence ELSE 0 END AS before_sequence
), uncounted AS (
    -- the job had a next run time, so it was counted if it has a load profile
    INSERT INTO load_profile AS r (tenant_no, key, profile, jobs, cost_us)
    SELECT tenant_no, load_profile, '', -count(*), -sum(cost_us)
      FROM fired WHERE next_at IS NULL AND load_profile <> 0
     GROUP BY tenant_no, load_profile ORDER BY tenant_no, load_profile
        ON CONFLICT (tenant_no, key) DO UPDATE
       SET jobs = r.jobs + excluded.jobs, cost_us = r.cost_us + excluded.cost_us
), skipped AS (
    INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, prev_at,
                     prev_sequence, number, finished_at, skipped_to, skipped_count, skip_reason)
    SELECT skip_from, job_no, 0, 0, tenant_no, {attempt.skipped}, 0, head_at, head_sequence,
           executions - (start_at IS NOT NULL AND pool IS NULL)::int4, (SELECT now FROM clock),
           skip_to, skip_count, skip_reason
      FROM fired WHERE skip_from IS NOT NULL
), queued AS (
    INSERT INTO ready ({new_ready_columns})
    SELECT pool, lane, priority, should_start_by, since, start_at, job_no, 0, 0,
           tenant_no, before_at, before_sequence, limit_key, open_from, open_until,
           forbidden_nodes::jsonb, own_priority, rise, limit_max
      FROM fired WHERE start_at IS NOT NULL AND pool IS NOT NULL
), started AS (
    INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, node_no,
                     prev_at, prev_sequence, number, started_at)
    SELECT start_at, job_no, 0, 0, tenant_no, {attempt.running}, 1, :node, before_at,
           before_sequence, executions,
           (SELECT now FROM clock)
      FROM fired WHERE start_at IS NOT NULL AND pool IS NULL
), reached AS (
    {lower_watermark}
      FROM (SELECT min(start_at) AS earliest FROM fired WHERE pool IS NULL) AS f
     WHERE node_no = :node
       AND (low_watermark > earliest OR reached_back_to IS NULL OR reached_back_to > earliest)
)
SELECT (SELECT now FROM clock), EXISTS (SELECT FROM alive), array_agg(job_no) FROM fired;

-- :name fire_claimed (
--   now, node, job_no, generation, due, head_at, head_sequence, next_at, slot, idle_only
-- )
-- Fires the common batch: each job starts at its due time, is claimed as it is fired and skips no
-- run.
WITH clock AS MATERIALIZED (SELECT {clock} AS now), alive AS MATERIALIZED (
    {alive_node}
), fired AS (
    UPDATE job_state s
       SET next_at = d.next_at, slot = d.slot, last_fired_at = greatest(s.last_fired_at, d.due),
           head_at = d.due, head_sequence = 0, live = s.live + 1, executions = s.executions + 1,
           fired = s.fired + 1
      FROM unnest(:job_no::int8[], :generation::int4[], :due::int8[], :head_at::int8[],
                  :head_sequence::int4[], :next_at::int8[],
                  :slot::int4[], :idle_only::bool[])
           AS d(job_no, generation, due, head_at, head_sequence, next_at, slot, idle_only)
     WHERE s.job_no = d.job_no AND s.next_at = d.due AND s.generation = d.generation AND s.active
       AND s.head_at IS NOT DISTINCT FROM d.head_at
       AND s.head_sequence IS NOT DISTINCT FROM d.head_sequence
       AND (s.live = 0 OR NOT d.idle_only)
       AND d.due <= (SELECT now FROM clock) AND EXISTS (SELECT FROM alive)
 RETURNING s.job_no, s.tenant_no, s.executions, d.due, d.head_at, d.head_sequence
), started AS (
    INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, node_no,
                     prev_at, prev_sequence, number, started_at)
    SELECT due, job_no, 0, 0, tenant_no, {attempt.running}, 1, :node, head_at, head_sequence,
           executions,
           (SELECT now FROM clock)
      FROM fired
), reached AS (
    {lower_watermark}
      FROM (SELECT min(due) AS earliest FROM fired) AS f
     WHERE node_no = :node
       AND (low_watermark > earliest OR reached_back_to IS NULL OR reached_back_to > earliest)
)
SELECT (SELECT now FROM clock), EXISTS (SELECT FROM alive), array_agg(job_no) FROM fired;

-- :name fire_classify (job_no, generation, due, head_at, head_sequence)
-- Returns why jobs of a batch did not fire: whether they have not changed since the scheduler read
-- them, whether they have active runs, and whether a retry is delayed.
SELECT s.job_no, s.live,
       EXISTS (SELECT FROM delayed_attempt w WHERE w.job_no = s.job_no
               AND w.attempt > 0) AS retry_pending
  FROM unnest(:job_no::int8[], :generation::int4[], :due::int8[], :head_at::int8[],
              :head_sequence::int4[])
       AS d(job_no, generation, due, head_at, head_sequence)
  JOIN job_state s USING (job_no)
 WHERE s.next_at = d.due AND s.generation = d.generation AND s.active
   AND s.head_at IS NOT DISTINCT FROM d.head_at
   AND s.head_sequence IS NOT DISTINCT FROM d.head_sequence;
