-- Claiming attempts from the queue.

-- :fragment candidate_columns
priority, rise, own_priority, should_start_by, since, scheduled_at, job_no, sequence,
       attempt, tenant_no, fence, crashes, prev_at, prev_sequence, limit_key, limit_max

-- :fragment claimable
(open_from IS NULL OR open_from <= :now) AND (open_until IS NULL OR open_until > :now)
  AND (forbidden_nodes IS NULL
       OR NOT EXISTS (SELECT 1 FROM json_each(forbidden_nodes) WHERE value = :node_name))

-- :name claim_aged (pool, lane, limit, now, node_name, rise)
-- The first attempts in the order of waiting time, up to this `rise`.
SELECT {candidate_columns}
FROM ready
WHERE pool = :pool AND lane = :lane AND rise <= :rise
  AND {claimable}
ORDER BY rise, should_start_by, since, job_no LIMIT :limit

-- :name claim_candidates (pool, lane, limit, now, node_name)
-- The first attempts in the order of priority.
SELECT {candidate_columns}
FROM ready
WHERE pool = :pool AND lane = :lane
  AND {claimable}
ORDER BY priority DESC, should_start_by, since, job_no LIMIT :limit

-- :name claim_count_execution
UPDATE job_state SET executions = executions + 1 WHERE job_no = ?1

-- :name claim_definition
SELECT definition,
       (SELECT data FROM checkpoint c
        WHERE c.scheduled_at = ?1 AND c.job_no = ?2 AND c.sequence = ?3)
FROM job WHERE job_no = ?2

-- :name claim_restart (
--   scheduled_at, job_no, sequence, attempt, crashes, fence, node_no, started_at, priority)
-- An attempt that was returned to the queue already has a row.
UPDATE attempt
SET status = {attempt.running}, crashes = :crashes, fence = :fence, node_no = :node_no,
    started_at = :started_at, priority = :priority,
    number = (SELECT executions FROM job_state WHERE job_no = :job_no)
WHERE {this_attempt} AND status = {attempt.pending}

-- :name claim_start (
--   scheduled_at, job_no, sequence, attempt, tenant_no, crashes, fence, node_no, prev_at,
--   prev_sequence, started_at, priority)
INSERT INTO attempt (scheduled_at, job_no, sequence, attempt, tenant_no, status, crashes, fence,
                     node_no, prev_at, prev_sequence, number, started_at, priority)
VALUES (:scheduled_at, :job_no, :sequence, :attempt, :tenant_no, {attempt.running}, :crashes, :fence,
        :node_no, :prev_at, :prev_sequence,
        (SELECT executions FROM job_state WHERE job_no = :job_no), :started_at, :priority)

-- :name claim_take (scheduled_at, job_no, sequence, attempt)
DELETE FROM ready WHERE {this_attempt}
