-- Conditions of jobs: OK, WARNING or ERROR.

-- :name all_condition_counts
SELECT coalesce(sum(job_count), 0)::int8 AS jobs, coalesce(sum(warnings), 0)::int8 AS warnings,
       coalesce(sum(errors), 0)::int8 AS errors,
       (SELECT count(*)
          FROM (SELECT FROM job_condition WHERE reason = {reason.held_by_blackout} LIMIT 10000) AS h)
       AS held
  FROM tenant;

-- :name condition_counts
SELECT job_count AS jobs, warnings, errors,
       (SELECT count(*)
          FROM (SELECT FROM job_condition
                 WHERE tenant_no = $1 AND reason = {reason.held_by_blackout} LIMIT 10000) AS h) AS held
  FROM tenant WHERE tenant_no = $1;

-- :name judge (now, job_no, touched, level, reason, error_at, again_at)
-- Locks the rows of the jobs first, as finishing does, and then reads their conditions. A condition
-- that was touched since the job was read is not changed. The statement joins no table with
-- job_condition, because a plan made while it was empty would scan it for each row.
WITH clock AS MATERIALIZED (SELECT {clock} AS now), locked AS MATERIALIZED (
    SELECT d.*
      FROM unnest(:job_no::int8[], :touched::int4[], :level::int2[], :reason::int2[],
                  :error_at::int8[], :again_at::int8[])
           AS d(job_no, touched, level, reason, error_at, again_at)
      JOIN job_state s USING (job_no)
       FOR NO KEY UPDATE OF s
), judged AS MATERIALIZED (
    SELECT l.*, w.tenant_no, w.shard, w.level AS level_before, w.since AS since_before
      FROM locked l
     CROSS JOIN LATERAL (SELECT * FROM job_condition w
                          WHERE w.job_no = l.job_no AND w.touched = l.touched
                            FOR UPDATE) AS w
), kept AS (
    -- The rows exist and are locked. `touched` changes, so that other evaluations of the same jobs
    -- are dropped.
    INSERT INTO job_condition (job_no, tenant_no, shard, judge_at, level, reason, error_at, since)
    SELECT job_no, tenant_no, shard, again_at, level, reason, error_at,
           CASE WHEN level = level_before THEN since_before ELSE (SELECT now FROM clock) END
      FROM judged WHERE again_at IS NOT NULL
        ON CONFLICT (job_no) DO UPDATE
       SET judge_at = excluded.judge_at, touched = excluded.touched, level = excluded.level,
           reason = excluded.reason, error_at = excluded.error_at, since = excluded.since
), deleted AS (
    DELETE FROM job_condition
     WHERE job_no = ANY (ARRAY(SELECT job_no FROM judged WHERE again_at IS NULL))
 RETURNING job_no
), cleared AS (
    UPDATE job_state s SET has_condition = false FROM deleted g WHERE s.job_no = g.job_no
), counted AS (
    SELECT tenant_no,
           count(*) FILTER (WHERE level = {condition.warning} AND again_at IS NOT NULL)
         - count(*) FILTER (WHERE level_before = {condition.warning}) AS warnings,
           count(*) FILTER (WHERE level = {condition.error} AND again_at IS NOT NULL)
         - count(*) FILTER (WHERE level_before = {condition.error}) AS errors
      FROM judged GROUP BY tenant_no
)
UPDATE tenant t SET warnings = t.warnings + c.warnings, errors = t.errors + c.errors
  FROM (SELECT * FROM counted WHERE warnings <> 0 OR errors <> 0 ORDER BY tenant_no) AS c
 WHERE t.tenant_no = c.tenant_no;

-- :name list_at_risk (tenant, after_error_at, after_job_no, level, offset, limit)
-- Reads the index job_condition_at_risk.
SELECT w.job_no, j.id, coalesce(j.name, j.about::json ->> 'source_name') AS name, w.reason,
       w.error_at, w.since
  FROM job_condition w JOIN job j USING (job_no)
 WHERE w.tenant_no = :tenant AND w.level > {condition.ok}
   AND (w.error_at, w.job_no) > (:after_error_at::int8, :after_job_no::int8)
   AND (:level::int2 IS NULL OR w.level = :level)
 ORDER BY w.error_at, w.job_no OFFSET :offset LIMIT :limit;

-- :name overdue_in_queue (
--   now, shards, after_at, after_job_no, after_sequence, after_attempt, limit
-- )
-- Scans the next `limit` rows of the queue in key order. Returns the number of scanned rows, the
-- last key, and the jobs of overdue attempts that have no condition yet.
WITH clock AS MATERIALIZED (SELECT {clock} AS now), scanned AS MATERIALIZED (
    SELECT scheduled_at, job_no, sequence, attempt, should_start_by FROM ready
     WHERE (scheduled_at, job_no, sequence, attempt) > (:after_at::int8, :after_job_no::int8,
                                                        :after_sequence::int4, :after_attempt::int2)
     ORDER BY scheduled_at, job_no, sequence, attempt
     LIMIT :limit
)
SELECT l.scheduled_at, l.job_no, l.sequence, l.attempt, (SELECT count(*) FROM scanned) AS scanned,
       ARRAY(SELECT DISTINCT o.job_no FROM scanned o
              WHERE o.should_start_by < (SELECT now FROM clock)
                AND (o.job_no & 255)::int2 = ANY (:shards::int2[])
                -- a subquery instead of a join, because a plan made for an empty queue might scan
                -- job_state for each row
                AND (SELECT NOT s.has_condition FROM job_state s WHERE s.job_no = o.job_no)) AS jobs
  FROM scanned l
 ORDER BY l.scheduled_at DESC, l.job_no DESC, l.sequence DESC, l.attempt DESC
 LIMIT 1;

-- :name to_judge (now, shards, limit)
-- Reads conditions that are due for evaluation, shard by shard, until there are enough. For all
-- shards together (ANY), the planner would first collect all due rows in a bitmap.
WITH clock AS MATERIALIZED (SELECT {clock} AS now), due AS MATERIALIZED (
    SELECT w.*
      FROM (SELECT DISTINCT shard FROM unnest(:shards::int2[]) AS d(shard)) AS d
     CROSS JOIN LATERAL (SELECT * FROM job_condition
                          WHERE shard = d.shard AND judge_at <= (SELECT now FROM clock)
                          ORDER BY judge_at LIMIT :limit) AS w
     LIMIT :limit
)
SELECT w.job_no, w.tenant_no, w.touched, w.level, s.active, s.next_at, s.last_fired_at,
       s.live > 0 AS is_live,
       s.last_start_at, s.last_end_at, s.last_good_start_at, s.last_good_end_at, s.failures,
       s.average_us, s.variance, coalesce(s.placed_at, j.created_at) AS since,
       j.definition,
       CASE WHEN s.live > 0 THEN (
           {newest_begun_run}
           SELECT r.started_at
             FROM (SELECT * FROM newest ORDER BY depth DESC LIMIT 1) AS n
             JOIN attempt r ON r.scheduled_at = n.at AND r.job_no = s.job_no
             AND r.sequence = n.sequence
            WHERE r.status = {attempt.running} LIMIT 1)
       END AS running_since
  FROM due w JOIN job_state s USING (job_no) JOIN job j USING (job_no);

-- :name mark_at_risk
WITH locked AS MATERIALIZED (
    SELECT s.job_no, s.tenant_no, s.shard, s.has_condition
      FROM unnest($1::int8[]) AS d(job_no) JOIN job_state s USING (job_no)
     WHERE s.stopped_at IS DISTINCT FROM {stopped.for_good}
       FOR NO KEY UPDATE OF s
), marked AS (
    UPDATE job_state s SET has_condition = true FROM locked l WHERE s.job_no = l.job_no
    AND NOT l.has_condition
)
INSERT INTO job_condition (job_no, tenant_no, shard, judge_at)
SELECT job_no, tenant_no, shard, 0 FROM locked
    {on_conflict_judge_again};
