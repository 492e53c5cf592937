-- The rows of the jobs are locked first, as finish does, and then those of the list, as they are by
-- then. What has been touched since it was judged is left alone. Nothing is joined with the list,
-- which a plan made while it was empty would do the wrong way round.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), locked AS MATERIALIZED (
    SELECT d.*
      FROM unnest($2::int8[], $3::int4[], $4::int2[], $5::int2[], $6::int8[], $7::int8[])
           AS d(job_no, touched, level, reason, error_at, again_at)
      JOIN job_state s USING (job_no)
       FOR NO KEY UPDATE OF s
), judged AS MATERIALIZED (
    SELECT l.*, w.tenant_no, w.shard, w.level AS level_before, w.since AS since_before
      FROM locked l
     CROSS JOIN LATERAL (SELECT * FROM watch w
                          WHERE w.job_no = l.job_no AND w.touched = l.touched
                            FOR UPDATE) AS w
), kept AS (
    -- they are there, and locked; whoever else has read them judges what is no more
    INSERT INTO watch (job_no, tenant_no, shard, judge_at, level, reason, error_at, since)
    SELECT job_no, tenant_no, shard, again_at, level, reason, error_at,
           CASE WHEN level = level_before THEN since_before ELSE (SELECT now FROM clock) END
      FROM judged WHERE again_at IS NOT NULL
        ON CONFLICT (job_no) DO UPDATE
       SET judge_at = excluded.judge_at, touched = excluded.touched, level = excluded.level,
           reason = excluded.reason, error_at = excluded.error_at, since = excluded.since
), gone AS (
    DELETE FROM watch
     WHERE job_no = ANY (ARRAY(SELECT job_no FROM judged WHERE again_at IS NULL))
 RETURNING job_no
), cleared AS (
    UPDATE job_state s SET watched = false FROM gone g WHERE s.job_no = g.job_no
), counted AS (
    SELECT tenant_no,
           count(*) FILTER (WHERE level = 1 AND again_at IS NOT NULL)
         - count(*) FILTER (WHERE level_before = 1) AS warnings,
           count(*) FILTER (WHERE level = 2 AND again_at IS NOT NULL)
         - count(*) FILTER (WHERE level_before = 2) AS errors
      FROM judged GROUP BY tenant_no
)
UPDATE tenant t SET warnings = t.warnings + c.warnings, errors = t.errors + c.errors
  FROM (SELECT * FROM counted WHERE warnings <> 0 OR errors <> 0 ORDER BY tenant_no) AS c
 WHERE t.tenant_no = c.tenant_no;
