-- Replacing an active run of a job by a newer run.

-- :name supersede_mark (job_no, generation, due)
-- Cancels the running attempts of jobs that have not changed since the scheduler decided (a deleted
-- job has no next run time). The attempts are found as in command_find_running. A finish or requeue
-- that waits for the attempt's row sees the cancellation mark in the row.
WITH RECURSIVE busy AS MATERIALIZED (
    SELECT s.job_no, s.head_at, s.head_sequence, s.executions,
           s.live - (SELECT count(*) FROM ready q WHERE q.job_no = s.job_no)
                  - (SELECT count(*) FROM delayed_attempt w WHERE w.job_no = s.job_no) AS running
      FROM unnest(:job_no::int8[], :generation::int4[], :due::int8[]) AS d(job_no, generation, due)
      JOIN job_state s USING (job_no)
     WHERE s.generation = d.generation AND s.next_at = d.due
), linked_run AS (
    SELECT job_no, head_at AS at, head_sequence AS sequence, 0 AS depth, running
      FROM busy WHERE head_at IS NOT NULL AND running > 0
     UNION ALL
    SELECT c.job_no, p.prev_at, p.prev_sequence, c.depth + 1, c.running - p.running
      FROM linked_run c
     CROSS JOIN LATERAL (SELECT max(prev_at) AS prev_at, max(prev_sequence) AS prev_sequence,
                                count(*) FILTER (WHERE status = {attempt.running}) AS running
                           FROM (SELECT prev_at, prev_sequence, status FROM attempt r
                                  WHERE r.scheduled_at = c.at AND r.job_no = c.job_no
                                    AND r.sequence = c.sequence
                                  UNION ALL
                                 SELECT prev_at, prev_sequence, {attempt.pending} FROM ready q
                                  WHERE q.scheduled_at = c.at AND q.job_no = c.job_no
                                    AND q.sequence = c.sequence) AS a) AS p
     WHERE p.prev_at IS NOT NULL AND c.running > p.running AND c.depth < 10000
), marked AS (
    UPDATE attempt r SET cancel_requested = true, superseded = true
      FROM (SELECT * FROM linked_run ORDER BY job_no) AS c
     WHERE r.scheduled_at = c.at AND r.job_no = c.job_no AND r.sequence = c.sequence
       AND r.status = {attempt.running} AND NOT r.cancel_requested
 RETURNING r.node_no, r.scheduled_at, r.job_no, r.sequence, r.attempt
), notified AS (
    INSERT INTO cancellation (node_no, scheduled_at, job_no, sequence, attempt)
    SELECT * FROM marked ON CONFLICT DO NOTHING
)
SELECT job_no, executions FROM busy;

-- :name supersede_lock (now, job_no)
SELECT {clock} AS now, s.job_no, s.live, s.head_at, s.head_sequence
  FROM unnest(:job_no::int8[]) AS d(job_no) JOIN job_state s USING (job_no)
   FOR NO KEY UPDATE OF s;

-- :name supersede_find (job_no, generation, due)
-- Returns whether an attempt has started in the meantime or is pending.
SELECT s.job_no, s.executions,
       EXISTS (SELECT FROM ready q WHERE q.job_no = s.job_no)
    OR EXISTS (SELECT FROM delayed_attempt w WHERE w.job_no = s.job_no) AS has_pending
  FROM unnest(:job_no::int8[], :generation::int4[], :due::int8[]) AS d(job_no, generation, due)
  JOIN job_state s USING (job_no)
 WHERE s.generation = d.generation AND s.next_at = d.due;

-- :name supersede_withdraw_ready (job_no, generation, due)
DELETE FROM ready
 WHERE job_no = ANY (ARRAY(
           SELECT s.job_no
             FROM unnest(:job_no::int8[], :generation::int4[], :due::int8[]) AS d(job_no, generation, due)
             JOIN job_state s USING (job_no)
            WHERE s.generation = d.generation AND s.next_at = d.due))
RETURNING {withdrawn_columns};

-- :name supersede_withdraw_delayed (job_no, generation, due)
DELETE FROM delayed_attempt
 WHERE job_no = ANY (ARRAY(
           SELECT s.job_no
             FROM unnest(:job_no::int8[], :generation::int4[], :due::int8[]) AS d(job_no, generation, due)
             JOIN job_state s USING (job_no)
            WHERE s.generation = d.generation AND s.next_at = d.due))
RETURNING scheduled_at, job_no, sequence, attempt, tenant_no;
