-- Firing delayed attempts: retries and triggered runs, each with a separate due time.

-- :name fire_delayed (
--   now, node, job_no, due, scheduled_at, sequence, attempt, pool, lane, priority,
--   should_start_by, limit_key, open_from, open_until, forbidden_nodes, own_priority, since,
--   rise, limit_max
-- )
-- Each job occurs once in the batch. The job's row is read as it is locked and not from the
-- snapshot of the statement, because a run must link to the newest previous run.
WITH clock AS MATERIALIZED (SELECT {clock} AS now), alive AS MATERIALIZED (
    {alive_node}
), taken AS (
    DELETE FROM delayed_attempt w
     USING unnest(:job_no::int8[], :due::int8[], :scheduled_at::int8[], :sequence::int4[],
                  :attempt::int2[], :pool::text[],
                  :lane::int2[], :priority::int2[], :should_start_by::int8[], :limit_key::bytea[],
                  :open_from::int8[],
                  :open_until::int8[], :forbidden_nodes::text[], :own_priority::bool[],
                  :since::int8[], :rise::int8[], :limit_max::int4[])
           AS d(job_no, due, scheduled_at, sequence, attempt, pool, lane, priority,
                should_start_by, limit_key, open_from, open_until, forbidden_nodes,
                own_priority, since, rise, limit_max)
     WHERE w.shard = (d.job_no & 255)::int2 AND w.due = d.due AND w.scheduled_at = d.scheduled_at
       AND w.job_no = d.job_no AND w.sequence = d.sequence AND w.attempt = d.attempt
       AND d.due <= (SELECT now FROM clock) AND EXISTS (SELECT FROM alive)
 RETURNING w.tenant_no, w.priority AS given, d.*
), locked AS MATERIALIZED (
    SELECT s.head_at, s.head_sequence, s.executions + (g.pool IS NULL)::int4 AS executions, g.*
      FROM (SELECT * FROM taken ORDER BY job_no) AS g JOIN job_state s USING (job_no)
       FOR NO KEY UPDATE OF s
), advanced AS (
    UPDATE job_state s
       SET executions = l.executions,
           head_at = CASE WHEN l.attempt = 0 THEN l.scheduled_at ELSE s.head_at END,
           head_sequence = CASE WHEN l.attempt = 0 THEN l.sequence ELSE s.head_sequence END
      FROM locked l
     WHERE s.job_no = l.job_no AND (l.attempt = 0 OR l.pool IS NULL)
), queued AS (
    INSERT INTO ready ({new_ready_columns})
    SELECT pool, lane, priority, should_start_by, since, scheduled_at, job_no,
           sequence, attempt, tenant_no, CASE WHEN attempt = 0 THEN head_at END,
           CASE WHEN attempt = 0 THEN head_sequence END, limit_key, open_from,
           open_until, forbidden_nodes::jsonb, own_priority, rise, limit_max
      FROM locked WHERE pool IS NOT NULL
), started AS (
    INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, node_no,
                     prev_at, prev_sequence, number, started_at, priority)
    SELECT scheduled_at, job_no, sequence, attempt, tenant_no, {attempt.running}, 1, :node,
           CASE WHEN attempt = 0 THEN head_at END, CASE WHEN attempt = 0 THEN head_sequence END,
           executions, (SELECT now FROM clock), given
      FROM locked WHERE pool IS NULL
), reached AS (
    {lower_watermark}
      FROM (SELECT min(scheduled_at) AS earliest FROM locked WHERE pool IS NULL) AS l
     WHERE node_no = :node AND earliest IS NOT NULL
)
SELECT (SELECT now FROM clock), EXISTS (SELECT FROM alive), array_agg(job_no) FROM locked;

-- :name fire_delayed_classify (job_no, due, scheduled_at, sequence, attempt)
-- The delayed attempts of a batch that still exist.
SELECT w.job_no
  FROM unnest(:job_no::int8[], :due::int8[], :scheduled_at::int8[], :sequence::int4[],
              :attempt::int2[])
       AS d(job_no, due, scheduled_at, sequence, attempt)
  JOIN delayed_attempt w ON w.shard = (d.job_no & 255)::int2 AND w.due = d.due
   AND w.scheduled_at = d.scheduled_at AND w.job_no = d.job_no AND w.sequence = d.sequence
   AND w.attempt = d.attempt;

-- :name look_ahead_delayed (shards, until, limit)
SELECT {due_job_columns}, w.due, w.scheduled_at, w.sequence, w.attempt,
       EXISTS (SELECT FROM checkpoint c
                WHERE c.scheduled_at = w.scheduled_at AND c.job_no = w.job_no
                  AND c.sequence = w.sequence) AS has_checkpoint,
       w.priority
  FROM (SELECT * FROM delayed_attempt WHERE shard = ANY (:shards::int2[]) AND due <= :until
         ORDER BY due, scheduled_at, job_no, sequence, attempt LIMIT :limit) AS w
  JOIN job_state s USING (job_no) JOIN job j USING (job_no)
 ORDER BY w.due, w.scheduled_at, w.job_no, w.sequence, w.attempt;

-- :name postpone (job_no, due, scheduled_at, sequence, attempt, until)
UPDATE delayed_attempt w SET due = d.until
  FROM unnest(:job_no::int8[], :due::int8[], :scheduled_at::int8[], :sequence::int4[],
              :attempt::int2[], :until::int8[])
       AS d(job_no, due, scheduled_at, sequence, attempt, until)
 WHERE w.shard = (d.job_no & 255)::int2 AND w.due = d.due AND w.scheduled_at = d.scheduled_at
   AND w.job_no = d.job_no AND w.sequence = d.sequence AND w.attempt = d.attempt;
