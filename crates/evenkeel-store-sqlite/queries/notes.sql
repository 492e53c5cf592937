-- Progress, logs and checkpoints of running attempts, and messages to the nodes that run them.

-- :name find_running (scheduled_at, job_no, sequence, attempt)
SELECT {owned_columns}, r.node_no
FROM attempt r JOIN job j ON j.job_no = r.job_no
WHERE r.scheduled_at = :scheduled_at AND r.job_no = :job_no AND r.sequence = :sequence
  AND r.attempt = :attempt AND r.status = {attempt.running}

-- :name save_progress (scheduled_at, job_no, sequence, attempt, fence, saved_at, progress, log)
-- NULL keeps the stored value, unless it was stored under another fence.
INSERT INTO note (scheduled_at, job_no, sequence, attempt, fence, saved_at, progress, log)
VALUES (:scheduled_at, :job_no, :sequence, :attempt, :fence, :saved_at, :progress, :log)
ON CONFLICT DO UPDATE
SET fence = excluded.fence, saved_at = excluded.saved_at,
    progress = coalesce(excluded.progress, iif(fence = excluded.fence, progress, NULL)),
    log = coalesce(excluded.log, iif(fence = excluded.fence, log, NULL))

-- :name save_progress_is_running (scheduled_at, job_no, sequence, attempt, node_no, fence)
SELECT 1 FROM attempt
WHERE {this_attempt} AND node_no = :node_no AND fence = :fence AND status = {attempt.running}

-- :name send_message (node_no, scheduled_at, job_no, sequence, attempt, fence, kind)
-- A node that has left the cluster would never read the message.
INSERT INTO node_message (node_no, scheduled_at, job_no, sequence, attempt, fence, kind)
SELECT node_no, :scheduled_at, :job_no, :sequence, :attempt, :fence, :kind
FROM node WHERE node_no = :node_no AND state <> {node.gone}
ON CONFLICT DO NOTHING

-- :name take_messages_find
SELECT 1 FROM node_message WHERE node_no = ?1 LIMIT 1

-- :name take_messages
DELETE FROM node_message
WHERE message_no IN (SELECT message_no FROM node_message WHERE node_no = ?1 ORDER BY message_no LIMIT ?2)
RETURNING message_no, {attempt_key}, fence, kind
