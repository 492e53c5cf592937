-- What running attempts report, and messages between nodes about them.

-- :name find_running
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.fence, r.tenant_no, r.started_at, r.crashes,
       j.definition, r.priority, r.node_no
  FROM attempt r JOIN job j USING (job_no)
 WHERE r.scheduled_at = $1 AND r.job_no = $2 AND r.sequence = $3 AND r.attempt = $4
   AND r.status = 1;

-- :name note
-- The lock makes an attempt say its last before it ends, or nothing any more. What is not said
-- stays, unless it was said under another fence.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), running AS MATERIALIZED (
    SELECT d.*
      FROM unnest($3::int8[], $4::int8[], $5::int4[], $6::int2[], $7::int4[], $8::text[], $9::text[],
                  $10::bytea[])
           AS d(job_no, scheduled_at, sequence, attempt, fence, progress, log, checkpoint)
      JOIN attempt r USING (scheduled_at, job_no, sequence, attempt)
     WHERE r.node_no = $2 AND r.fence = d.fence AND r.status = 1
       FOR NO KEY UPDATE OF r
), said AS (
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

-- :name send_message
-- Nobody would read one to a node that is gone. The lock waits for one that is going.
WITH addressee AS MATERIALIZED (
    SELECT node_no FROM node WHERE node_no = $1 AND state <> 3 FOR KEY SHARE
)
INSERT INTO node_message (node_no, scheduled_at, job_no, sequence, attempt, fence, kind)
SELECT node_no, $2, $3, $4, $5, $6, $7 FROM addressee
    ON CONFLICT DO NOTHING;

-- :name take_messages
-- Found once and deleted by their place, as in look_ahead_changed.
WITH taken AS (
    DELETE FROM node_message
     WHERE ctid = ANY (ARRAY(SELECT ctid FROM node_message WHERE node_no = $1 ORDER BY message_no
                              LIMIT $2 FOR UPDATE SKIP LOCKED))
 RETURNING *
)
SELECT scheduled_at, job_no, sequence, attempt, fence, kind FROM taken ORDER BY message_no;
