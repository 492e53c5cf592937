-- Rows are locked in the order in which firing does, whatever the plan, and looked at as they are by
-- then. What firing was quicker with stays as it is, and what is due is left to it. A job that nobody
-- has counted yet is moved without its count.
WITH locked AS MATERIALIZED (
    SELECT s.job_no, s.shard, s.tenant_no, s.watched, s.counted, s.rhythm AS left_rhythm, s.cost_us,
           d.new_at, d.slot, d.rhythm
      FROM unnest($4::int8[], $5::int4[], $6::int8[], $7::int8[], $8::int4[], $9::int8[])
           AS d(job_no, generation, old_at, new_at, slot, rhythm)
      JOIN job_state s USING (job_no)
     WHERE s.tenant_no = $2 AND s.active AND s.generation = d.generation AND s.next_at = d.old_at
       AND (s.live = 0 OR $3) AND d.new_at > $1::int8 AND d.old_at > $1::int8
       AND d.new_at > coalesce(s.last_fired_at, d.new_at - 1)
     ORDER BY s.job_no FOR NO KEY UPDATE OF s
), moved AS (
    UPDATE job_state s
       SET generation = s.generation + 1, next_at = l.new_at, slot = l.slot, placed_at = $1,
           rhythm = CASE WHEN l.counted THEN l.rhythm ELSE s.rhythm END
      FROM locked l WHERE s.job_no = l.job_no
), touched AS (
    INSERT INTO watch (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM locked WHERE watched
        ON CONFLICT (job_no) DO UPDATE SET judge_at = 0, touched = excluded.touched
), told AS (
    -- written even if it is there: whoever is just telling it read the job before this
    INSERT INTO changed_job (shard, job_no)
    SELECT shard, job_no FROM locked WHERE slot <= $1 / 900000000 + 1
        ON CONFLICT (shard, job_no) DO UPDATE SET job_no = excluded.job_no
)
SELECT array_agg(job_no), array_agg(CASE WHEN counted THEN left_rhythm END), array_agg(rhythm),
       array_agg(cost_us)
  FROM locked;
