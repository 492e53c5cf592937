-- Triggering runs.

-- :name trigger_is_taken
SELECT EXISTS (SELECT 1 FROM attempt WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3)
    OR EXISTS (SELECT 1 FROM ready WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3)
    OR EXISTS (SELECT 1 FROM delayed_attempt WHERE job_no = ?2 AND scheduled_at = ?1 AND sequence = ?3)

-- :name trigger_run_instead
SELECT next_at, live, head_at, head_sequence FROM job_state WHERE job_no = ?1

-- :name trigger_delayed
INSERT INTO delayed_attempt (shard, due, scheduled_at, job_no, sequence, attempt, tenant_no, priority)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
