-- Conditions of jobs: OK, WARNING or ERROR.

-- :name all_condition_counts
SELECT coalesce(sum(job_count), 0), coalesce(sum(warnings), 0), coalesce(sum(errors), 0),
       (SELECT count(*) FROM (SELECT 1 FROM job_condition WHERE reason = 9 LIMIT 10000))
FROM tenant

-- :name condition_counts
SELECT job_count, warnings, errors,
       (SELECT count(*) FROM (SELECT 1 FROM job_condition WHERE tenant_no = ?1 AND reason = 9 LIMIT 10000))
FROM tenant WHERE tenant_no = ?1

-- :name judge_count
UPDATE tenant SET warnings = warnings + ?2, errors = errors + ?3 WHERE tenant_no = ?1

-- :name judge_find
SELECT tenant_no, level, since FROM job_condition WHERE job_no = ?1 AND touched = ?2

-- :name judge_take_off
DELETE FROM job_condition WHERE job_no = ?1

-- :name judge_unmark
UPDATE job_state SET has_condition = 0 WHERE job_no = ?1

-- :name judge_write
UPDATE job_condition SET touched = touched + 1, judge_at = ?2, level = ?3, reason = ?4, error_at = ?5, since = ?6
WHERE job_no = ?1

-- :name list_at_risk
SELECT w.job_no, w.error_at, w.reason, w.since, j.id,
  coalesce(j.name, j.about ->> 'source_name') AS name
FROM job_condition w CROSS JOIN job j ON j.job_no = w.job_no
WHERE w.tenant_no = ?1 AND w.level > 0 AND (w.error_at, w.job_no) > (?2, ?3)
  AND (?4 IS NULL OR w.level = ?4)
ORDER BY w.error_at, w.job_no LIMIT ?5 OFFSET ?6

-- :name overdue_in_queue
-- The next ?7 of the queue in the order of their keys, and which of them are wanted.
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt,
       r.should_start_by < ?1 AND (r.job_no & 255) IN (SELECT value FROM json_each(?2))
       AND (SELECT s.has_condition = 0 FROM job_state s WHERE s.job_no = r.job_no) AS is_overdue
FROM ready r
WHERE (r.scheduled_at, r.job_no, r.sequence, r.attempt) > (?3, ?4, ?5, ?6)
ORDER BY r.scheduled_at, r.job_no, r.sequence, r.attempt LIMIT ?7

-- :name to_judge
SELECT job_no FROM job_condition WHERE shard = ?1 AND judge_at <= ?2 LIMIT ?3

-- :name to_judge_job
SELECT w.job_no, w.tenant_no, w.touched, w.level,
       s.active, s.next_at, s.last_fired_at, s.live, s.head_at, s.head_sequence,
       s.failures, s.last_start_at, s.last_end_at, s.last_good_start_at, s.last_good_end_at,
       s.average_us, s.variance, coalesce(s.placed_at, j.created_at) AS since, j.definition
FROM job_condition w JOIN job_state s ON s.job_no = w.job_no JOIN job j ON j.job_no = w.job_no
WHERE w.job_no = ?1

-- :name watch_mark
UPDATE job_state SET has_condition = 1 WHERE job_no = ?1 AND has_condition = 0

-- :name watch_put
INSERT INTO job_condition (job_no, tenant_no, shard, judge_at, touched)
SELECT s.job_no, s.tenant_no, s.shard, 0, random() & 1073741823
FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.job_no = ?1 AND j.state < 2
ON CONFLICT DO UPDATE SET touched = touched + 1, judge_at = 0

-- :name watch_notify
INSERT INTO changed_job (shard, job_no)
SELECT s.shard, s.job_no FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.job_no = ?1 AND j.state < 2
ON CONFLICT DO NOTHING

-- :name watch_touch
UPDATE job_condition SET touched = touched + 1, judge_at = 0 WHERE job_no = ?1
