-- Returning attempts of lost workers to the queue.

-- :name requeue (
--   now, node, job_no, scheduled_at, sequence, attempt, fence, crashed, pool, lane, priority,
--   should_start_by, limit_key, open_from, open_until, forbidden_nodes, own_priority, since,
--   rise, limit_max
-- )
-- An attempt that was cancelled, or whose job is stopped, is not queued again but recorded as
-- cancelled or superseded. `stopped_at` is read from the locked row of the job. So a transaction
-- that stops the job finds the queued attempt, or this statement finds the job stopped.
WITH clock AS MATERIALIZED (SELECT {clock} AS now), locked AS MATERIALIZED (
    SELECT d.*, coalesce(d.scheduled_at <= s.stopped_at, false) AS stopped
      FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[], :attempt::int2[],
                  :fence::int4[], :crashed::bool[],
                  :pool::text[], :lane::int2[], :priority::int2[], :should_start_by::int8[],
                  :limit_key::bytea[],
                  :open_from::int8[], :open_until::int8[], :forbidden_nodes::text[],
                  :own_priority::bool[], :since::int8[], :rise::int8[], :limit_max::int4[])
           AS d(job_no, scheduled_at, sequence, attempt, fence, crashed, pool, lane, priority,
                should_start_by, limit_key, open_from, open_until, forbidden_nodes,
                own_priority, since, rise, limit_max)
      JOIN job_state s USING (job_no)
       FOR NO KEY UPDATE OF s
), taken AS (
    UPDATE attempt r
       SET status = CASE WHEN r.superseded THEN {attempt.superseded}
                         WHEN l.stopped OR r.cancel_requested THEN {attempt.cancelled}
                         ELSE {attempt.pending} END,
           fence = r.fence + 1,
           crashes = r.crashes + l.crashed::int4,
           finished_at = CASE WHEN l.stopped OR r.cancel_requested THEN (SELECT now FROM clock) END
      FROM locked l
     WHERE r.scheduled_at = l.scheduled_at AND r.job_no = l.job_no AND r.sequence = l.sequence
       AND r.attempt = l.attempt AND r.node_no = :node AND r.fence = l.fence
       AND r.status = {attempt.running}
 RETURNING l.*, l.stopped OR r.cancel_requested AS is_over, r.status, r.fence AS new_fence,
 r.crashes, r.tenant_no, r.prev_at, r.prev_sequence
), queued AS (
    INSERT INTO ready ({new_ready_columns}, fence, crashes)
    SELECT pool, lane, priority, should_start_by, since, scheduled_at, job_no, sequence, attempt,
           tenant_no, prev_at, prev_sequence, limit_key, open_from, open_until,
           forbidden_nodes::jsonb, own_priority, rise, limit_max, new_fence, crashes
      FROM taken WHERE NOT is_over
), notes AS (
    -- the attempt starts again, so its notes are deleted as in finish_delete_notes
    DELETE FROM note
     WHERE ctid = ANY (ARRAY(
               SELECT n.ctid FROM taken t
                CROSS JOIN LATERAL (
                      SELECT ctid FROM note n
                       WHERE n.scheduled_at = t.scheduled_at AND n.job_no = t.job_no
                         AND n.sequence = t.sequence AND n.attempt = t.attempt
                      OFFSET 0) AS n))
), ended AS (
    UPDATE job_state s
       SET live = greatest(s.live - t.runs, 0), last_status = t.status,
           has_condition = s.stopped_at IS DISTINCT FROM {stopped.for_good}
      FROM (SELECT job_no, count(*)::int4 AS runs,
            max(status) AS status FROM taken WHERE is_over GROUP BY job_no) AS t
     WHERE s.job_no = t.job_no
 RETURNING s.job_no, s.tenant_no, s.shard, s.has_condition
), touched AS (
    INSERT INTO job_condition (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM ended WHERE has_condition
        {on_conflict_judge_again}
), changed AS (
    INSERT INTO changed_job (shard, job_no)
    SELECT shard, job_no FROM ended WHERE has_condition
        {on_conflict_reload_again}
)
SELECT scheduled_at, job_no, sequence, attempt FROM taken;

-- :name requeue_count_crash (job_no, scheduled_at, sequence, attempt)
-- The rows are locked, because the attempts have just finished in this transaction.
UPDATE attempt r
   SET crashes = r.crashes + 1
  FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[], :attempt::int2[])
       AS d(job_no, scheduled_at, sequence, attempt)
 WHERE r.scheduled_at = d.scheduled_at AND r.job_no = d.job_no AND r.sequence = d.sequence
   AND r.attempt = d.attempt;
