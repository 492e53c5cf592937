-- The rows of the jobs are locked first, as finish does, and then those of the list, as they are by
-- then. What has been touched since it was judged is left alone.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), locked AS MATERIALIZED (
    SELECT d.*
      FROM unnest($2::int8[], $3::int4[], $4::int2[], $5::int2[], $6::int8[], $7::int8[])
           AS d(job_no, touched, level, reason, error_at, again_at)
      JOIN job_state s USING (job_no)
       FOR NO KEY UPDATE OF s
), judged AS MATERIALIZED (
    SELECT l.*, w.tenant_no, w.level AS level_before
      FROM locked l JOIN watch w USING (job_no)
     WHERE w.touched = l.touched
       FOR NO KEY UPDATE OF w
), kept AS (
    UPDATE watch w
       SET judge_at = j.again_at, level = j.level, reason = j.reason, error_at = j.error_at,
           since = CASE WHEN w.level = j.level THEN w.since ELSE (SELECT now FROM clock) END
      FROM judged j
     WHERE w.job_no = j.job_no AND j.again_at IS NOT NULL
), gone AS (
    DELETE FROM watch w USING judged j WHERE w.job_no = j.job_no AND j.again_at IS NULL
 RETURNING w.job_no
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
