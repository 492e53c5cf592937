-- Conditions of jobs: OK, WARNING or ERROR.

-- :name all_condition_counts
SELECT coalesce(sum(job_count), 0) AS job_count, coalesce(sum(warnings), 0) AS warnings,
       coalesce(sum(errors), 0) AS errors,
       (SELECT count(*) FROM (SELECT 1 FROM job_condition
                              WHERE reason = {reason.held_by_blackout} LIMIT 10000)) AS held
FROM tenant

-- :name condition_counts
SELECT job_count, warnings, errors,
       (SELECT count(*) FROM (SELECT 1 FROM job_condition
                              WHERE tenant_no = ?1 AND reason = {reason.held_by_blackout}
                              LIMIT 10000)) AS held
FROM tenant WHERE tenant_no = ?1

-- :name judge_count
UPDATE tenant SET warnings = warnings + ?2, errors = errors + ?3 WHERE tenant_no = ?1

-- :name judge_find
SELECT tenant_no, level, since FROM job_condition WHERE job_no = ?1 AND touched = ?2

-- :name judge_delete
DELETE FROM job_condition WHERE job_no = ?1

-- :name judge_unmark
UPDATE job_state SET has_condition = 0 WHERE job_no = ?1

-- :name judge_write (job_no, judge_at, level, reason, error_at, since)
UPDATE job_condition
SET touched = touched + 1, judge_at = :judge_at, level = :level, reason = :reason,
    error_at = :error_at, since = :since
WHERE job_no = :job_no

-- :name list_at_risk (tenant_no, after_error_at, after_job_no, level, limit, offset)
SELECT w.job_no, w.error_at, w.reason, w.since, j.id,
  coalesce(j.name, j.about ->> 'source_name') AS name
FROM job_condition w CROSS JOIN job j ON j.job_no = w.job_no
WHERE w.tenant_no = :tenant_no AND w.level > {condition.ok}
  AND (w.error_at, w.job_no) > (:after_error_at, :after_job_no)
  AND (:level IS NULL OR w.level = :level)
ORDER BY w.error_at, w.job_no LIMIT :limit OFFSET :offset

-- :name overdue_in_queue (before, shards, scheduled_at, job_no, sequence, attempt, limit)
-- The next `limit` attempts of the queue in the order of their keys. `is_overdue` marks attempts of
-- the given shards that should have started and whose job has no condition yet.
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt,
       r.should_start_by < :before AND (r.job_no & 255) IN (SELECT value FROM json_each(:shards))
       AND (SELECT s.has_condition = 0 FROM job_state s WHERE s.job_no = r.job_no) AS is_overdue
FROM ready r
WHERE (r.scheduled_at, r.job_no, r.sequence, r.attempt) > (:scheduled_at, :job_no, :sequence, :attempt)
ORDER BY r.scheduled_at, r.job_no, r.sequence, r.attempt LIMIT :limit

-- :name to_judge
SELECT job_no FROM job_condition WHERE shard = ?1 AND judge_at <= ?2 LIMIT ?3

-- :name to_judge_job
SELECT w.job_no, w.tenant_no, w.touched, w.level,
       s.active, s.next_at, s.last_fired_at, s.live, s.head_at, s.head_sequence,
       {history_columns}, coalesce(s.placed_at, j.created_at) AS since, j.definition
FROM job_condition w JOIN job_state s ON s.job_no = w.job_no JOIN job j ON j.job_no = w.job_no
WHERE w.job_no = ?1

-- :name mark_at_risk_state
UPDATE job_state SET has_condition = 1 WHERE job_no = ?1 AND has_condition = 0

-- :name mark_at_risk_insert
INSERT INTO job_condition (job_no, tenant_no, shard, judge_at, touched)
SELECT s.job_no, s.tenant_no, s.shard, 0, random() & 1073741823
FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.job_no = ?1 AND j.state < {job.cancelled}
ON CONFLICT DO UPDATE SET touched = touched + 1, judge_at = 0

-- :name mark_at_risk_changed
INSERT INTO changed_job (shard, job_no)
SELECT s.shard, s.job_no FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.job_no = ?1 AND j.state < {job.cancelled}
ON CONFLICT DO NOTHING

-- :name mark_at_risk_touch
UPDATE job_condition SET touched = touched + 1, judge_at = 0 WHERE job_no = ?1
