WITH before AS MATERIALIZED (
    SELECT head_at, head_sequence FROM job_state WHERE job_no = $1 FOR NO KEY UPDATE
), closed AS (
    UPDATE job_state
       SET live = greatest(live - 1, 0),
           head_at = CASE WHEN $2 THEN $3 ELSE head_at END,
           head_sequence = CASE WHEN $2 THEN $4 ELSE head_sequence END,
           last_status = 4, watched = stopped_at IS DISTINCT FROM 9223372036854775807
     WHERE job_no = $1
 RETURNING shard, job_no, tenant_no, watched
), touched AS (
    INSERT INTO watch (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM closed WHERE watched
        ON CONFLICT (job_no) DO UPDATE SET judge_at = 0, touched = excluded.touched
), changed AS (
    -- written even if it is there: whoever is just telling it read the job before this
    INSERT INTO changed_job (shard, job_no)
    SELECT shard, job_no FROM closed WHERE watched
        ON CONFLICT (shard, job_no) DO UPDATE SET job_no = excluded.job_no
)
SELECT head_at, head_sequence,
       coalesce($5::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
  FROM before;
