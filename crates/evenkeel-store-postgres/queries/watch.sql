WITH locked AS MATERIALIZED (
    SELECT s.job_no, s.tenant_no, s.shard, s.watched
      FROM unnest($1::int8[]) AS d(job_no) JOIN job_state s USING (job_no)
     WHERE s.stopped_at IS DISTINCT FROM 9223372036854775807
       FOR NO KEY UPDATE OF s
), marked AS (
    UPDATE job_state s SET watched = true FROM locked l WHERE s.job_no = l.job_no AND NOT l.watched
)
INSERT INTO watch (job_no, tenant_no, shard, judge_at)
SELECT job_no, tenant_no, shard, 0 FROM locked
    ON CONFLICT (job_no) DO UPDATE SET judge_at = 0, touched = excluded.touched;
