-- Triggering runs.

-- :name trigger_is_taken (scheduled_at, job_no, sequence)
SELECT EXISTS (SELECT 1 FROM attempt WHERE {this_run})
    OR EXISTS (SELECT 1 FROM ready WHERE {this_run})
    OR EXISTS (SELECT 1 FROM delayed_attempt
               WHERE job_no = :job_no AND scheduled_at = :scheduled_at AND sequence = :sequence)

-- :name trigger_open
UPDATE job_state SET live = live + 1 WHERE job_no = ?1

-- :name trigger_delayed (shard, due, scheduled_at, job_no, sequence, attempt, tenant_no, priority)
INSERT INTO delayed_attempt (shard, due, scheduled_at, job_no, sequence, attempt, tenant_no, priority)
VALUES (:shard, :due, :scheduled_at, :job_no, :sequence, :attempt, :tenant_no, :priority)
