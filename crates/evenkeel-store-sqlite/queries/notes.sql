-- What running attempts report, and messages between nodes about them.

-- :name find_running
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.fence, r.tenant_no, r.started_at,
       r.crashes, j.definition, r.priority, r.node_no
FROM attempt r JOIN job j ON j.job_no = r.job_no
WHERE r.scheduled_at = ?1 AND r.job_no = ?2 AND r.sequence = ?3 AND r.attempt = ?4 AND r.status = 1

-- :name note
-- What is not said stays, unless it was said under another fence.
INSERT INTO note (scheduled_at, job_no, sequence, attempt, fence, saved_at, progress, log)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO UPDATE
SET fence = excluded.fence, saved_at = excluded.saved_at,
    progress = coalesce(excluded.progress, iif(fence = excluded.fence, progress, NULL)),
    log = coalesce(excluded.log, iif(fence = excluded.fence, log, NULL))

-- :name note_is_running
SELECT 1 FROM attempt
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4
  AND node_no = ?5 AND fence = ?6 AND status = 1

-- :name send_message
-- Nobody would read one to a node that is gone.
INSERT INTO node_message (node_no, scheduled_at, job_no, sequence, attempt, fence, kind)
SELECT node_no, ?2, ?3, ?4, ?5, ?6, ?7 FROM node WHERE node_no = ?1 AND state <> 3
ON CONFLICT DO NOTHING

-- :name take_messages
DELETE FROM node_message
WHERE message_no IN (SELECT message_no FROM node_message WHERE node_no = ?1 ORDER BY message_no LIMIT ?2)
RETURNING message_no, scheduled_at, job_no, sequence, attempt, fence, kind
