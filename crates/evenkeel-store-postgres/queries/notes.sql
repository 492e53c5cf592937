-- Progress, logs and checkpoints of running attempts, and messages to the nodes that run them.

-- :name find_running (scheduled_at, job_no, sequence, attempt)
SELECT {owned_columns}, r.node_no
  FROM attempt r JOIN job j USING (job_no)
 WHERE r.scheduled_at = :scheduled_at AND r.job_no = :job_no AND r.sequence = :sequence
   AND r.attempt = :attempt
   AND r.status = {attempt.running};

-- :name save_progress (
--   now, node, job_no, scheduled_at, sequence, attempt, fence, progress, log, checkpoint
-- )
-- The lock makes a transaction that finishes the attempt wait for this one. NULL keeps the stored
-- value, unless it was written under another fence.
WITH clock AS MATERIALIZED (SELECT {clock} AS now), running AS MATERIALIZED (
    SELECT d.*
      FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[], :attempt::int2[],
                  :fence::int4[], :progress::text[], :log::text[],
                  :checkpoint::bytea[])
           AS d(job_no, scheduled_at, sequence, attempt, fence, progress, log, checkpoint)
      JOIN attempt r USING (scheduled_at, job_no, sequence, attempt)
     WHERE r.node_no = :node AND r.fence = d.fence AND r.status = {attempt.running}
       FOR NO KEY UPDATE OF r
), noted AS (
    INSERT INTO note AS n (scheduled_at, job_no, sequence, attempt, fence, saved_at, progress, log)
    SELECT scheduled_at, job_no, sequence, attempt, fence, (SELECT now FROM clock), progress, log
      FROM running WHERE progress IS NOT NULL OR log IS NOT NULL
        ON CONFLICT (scheduled_at, job_no, sequence, attempt) DO UPDATE
       SET fence = excluded.fence, saved_at = excluded.saved_at,
           progress = coalesce(excluded.progress,
                               CASE WHEN n.fence = excluded.fence THEN n.progress END),
           log = coalesce(excluded.log, CASE WHEN n.fence = excluded.fence THEN n.log END)
), saved AS (
    INSERT INTO checkpoint (scheduled_at, job_no, sequence, saved_at, data)
    SELECT scheduled_at, job_no, sequence, (SELECT now FROM clock), checkpoint
      FROM running WHERE checkpoint IS NOT NULL
        ON CONFLICT (scheduled_at, job_no, sequence) DO UPDATE
       SET saved_at = excluded.saved_at, data = excluded.data
)
SELECT scheduled_at, job_no, sequence, attempt FROM running;

-- :name send_message (node, scheduled_at, job_no, sequence, attempt, fence, kind)
-- Skips nodes that have left the cluster. The lock waits for a node that is retiring.
WITH addressee AS MATERIALIZED (
    SELECT node_no FROM node WHERE node_no = :node AND state <> {node.gone} FOR KEY SHARE
)
INSERT INTO node_message (node_no, scheduled_at, job_no, sequence, attempt, fence, kind)
SELECT node_no, :scheduled_at, :job_no, :sequence, :attempt, :fence, :kind FROM addressee
    ON CONFLICT DO NOTHING;

-- :name take_messages (node, limit)
-- Finds rows once and deletes them by ctid, as look_ahead_changed does.
WITH taken AS (
    DELETE FROM node_message
     WHERE ctid = ANY (ARRAY(SELECT ctid FROM node_message WHERE node_no = :node ORDER BY message_no
                              LIMIT :limit FOR UPDATE SKIP LOCKED))
 RETURNING *
)
SELECT scheduled_at, job_no, sequence, attempt, fence, kind FROM taken ORDER BY message_no;
