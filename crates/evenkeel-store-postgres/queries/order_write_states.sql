-- A job that stops has no next time, whatever it had, and one that is over is not watched.
WITH changed AS (
    UPDATE job_state s
       SET generation = s.generation + 1, active = d.standing = 0, stopped_at = d.stopped_at,
           next_at = CASE WHEN d.standing <> 0 THEN NULL WHEN d.placed THEN d.next_at
                          ELSE s.next_at END,
           slot = CASE WHEN d.standing <> 0 THEN NULL WHEN d.placed THEN d.slot ELSE s.slot END,
           placed_at = CASE WHEN d.placed THEN $1::int8 ELSE s.placed_at END,
           by_end = coalesce(d.by_end, s.by_end),
           live = s.live + d.begins::int4,
           watched = s.watched AND d.standing < 2,
           rhythm = d.rhythm, cost_us = d.cost_us, cost_stated = d.cost_stated,
           counted = d.rhythm <> 0
      FROM unnest($2::int8[], $3::int2[], $4::int8[], $5::bool[], $6::int8[], $7::int4[],
                  $8::bool[], $9::bool[], $10::int8[], $11::int8[], $12::bool[])
           AS d(job_no, standing, stopped_at, placed, next_at, slot, by_end, begins, rhythm, cost_us,
                cost_stated)
     WHERE s.job_no = d.job_no
 RETURNING s.shard, s.job_no, s.tenant_no, s.slot, s.watched
), touched AS (
    INSERT INTO watch (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM changed WHERE watched
        ON CONFLICT (job_no) DO UPDATE SET judge_at = 0, touched = excluded.touched
)
-- written even if it is there: whoever is just telling it read the job before this
INSERT INTO changed_job (shard, job_no)
SELECT shard, job_no FROM changed WHERE slot <= $1::int8 / 900000000 + 1
    ON CONFLICT (shard, job_no) DO UPDATE SET job_no = excluded.job_no;
