WITH changed AS (
    UPDATE job_state
       SET generation = generation + 1, next_at = CASE WHEN $2 THEN $3 ELSE next_at END,
           slot = CASE WHEN NOT active THEN NULL WHEN $2 THEN $4 ELSE slot END,
           placed_at = CASE WHEN $2 THEN $5::int8 ELSE placed_at END,
           by_end = coalesce($6, by_end)
     WHERE job_no = $1
 RETURNING shard, job_no, tenant_no, slot, watched
), touched AS (
    INSERT INTO watch (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM changed WHERE watched
        ON CONFLICT (job_no) DO UPDATE SET judge_at = 0, touched = excluded.touched
)
-- written even if it is there: whoever is just telling it read the job before this
INSERT INTO changed_job (shard, job_no)
SELECT shard, job_no FROM changed WHERE slot <= $5::int8 / 900000000 + 1
    ON CONFLICT (shard, job_no) DO UPDATE SET job_no = excluded.job_no;
