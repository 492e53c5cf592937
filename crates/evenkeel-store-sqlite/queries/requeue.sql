-- Returning attempts of lost workers to the queue.

-- :name requeue_count_crash (scheduled_at, job_no, sequence, attempt)
UPDATE attempt SET crashes = crashes + 1
WHERE {this_attempt}

-- :name requeue_attempt (scheduled_at, job_no, sequence, attempt, node_no, fence, crashed)
-- The row keeps the node and the start of the lost attempt; the higher fence keeps that node from
-- ending it.
UPDATE attempt
SET status = {attempt.pending}, fence = fence + 1, crashes = crashes + :crashed
WHERE {this_attempt} AND node_no = :node_no AND fence = :fence AND status = {attempt.running}
RETURNING crashes

-- :name requeue_withdraw (
--   scheduled_at, job_no, sequence, attempt, node_no, fence, crashed, finished_at, status)
UPDATE attempt
SET status = :status, fence = fence + 1, crashes = crashes + :crashed, finished_at = :finished_at
WHERE {this_attempt} AND node_no = :node_no AND fence = :fence AND status = {attempt.running}
