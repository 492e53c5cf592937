-- Claiming attempts from the queue.

-- :name claim_aged
-- The first by what they have waited, if that brings them so far.
SELECT priority, rise, own_priority, should_start_by, since, scheduled_at, job_no, sequence,
       attempt, tenant_no, fence, crashes, prev_at, prev_sequence, limit_key, limit_max
FROM ready
WHERE pool = ?1 AND lane = ?2 AND rise <= ?6
  AND (open_from IS NULL OR open_from <= ?4) AND (open_until IS NULL OR open_until > ?4)
  AND (forbidden_nodes IS NULL
       OR NOT EXISTS (SELECT 1 FROM json_each(forbidden_nodes) WHERE value = ?5))
ORDER BY rise, should_start_by, since, job_no LIMIT ?3

-- :name claim_candidates
-- The first by priority.
SELECT priority, rise, own_priority, should_start_by, since, scheduled_at, job_no, sequence,
       attempt, tenant_no, fence, crashes, prev_at, prev_sequence, limit_key, limit_max
FROM ready
WHERE pool = ?1 AND lane = ?2
  AND (open_from IS NULL OR open_from <= ?4) AND (open_until IS NULL OR open_until > ?4)
  AND (forbidden_nodes IS NULL
       OR NOT EXISTS (SELECT 1 FROM json_each(forbidden_nodes) WHERE value = ?5))
ORDER BY priority DESC, should_start_by, since, job_no LIMIT ?3

-- :name claim_count_execution
UPDATE job_state SET executions = executions + 1 WHERE job_no = ?1

-- :name claim_definition
SELECT definition,
       (SELECT data FROM checkpoint c
        WHERE c.scheduled_at = ?1 AND c.job_no = ?2 AND c.sequence = ?3)
FROM job WHERE job_no = ?2

-- :name claim_restart
-- An attempt that was handed back has its row already.
UPDATE attempt SET status = 1, crashes = ?5, fence = ?6, node_no = ?7, started_at = ?8, priority = ?9,
               number = (SELECT executions FROM job_state WHERE job_no = ?2)
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4 AND status = 0

-- :name claim_start
INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, crashes, fence,
                 node_no, prev_at, prev_sequence, number, started_at, priority)
VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9, ?10,
        (SELECT executions FROM job_state WHERE job_no = ?2), ?11, ?12)

-- :name claim_take
DELETE FROM ready WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4
