-- Unless it is over, a job whose chains are withdrawn is judged, and its scheduler is told.
WITH closed AS (
    UPDATE job_state s
       SET live = d.live, head_at = d.head_at, head_sequence = d.head_sequence,
           last_status = $5,
           watched = s.stopped_at IS DISTINCT FROM 9223372036854775807
      FROM unnest($1::int8[], $2::int4[], $3::int8[], $4::int4[])
           AS d(job_no, live, head_at, head_sequence)
     WHERE s.job_no = d.job_no
 RETURNING s.job_no, s.tenant_no, s.shard, s.watched
), touched AS (
    INSERT INTO watch (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM closed WHERE watched
        ON CONFLICT (job_no) DO UPDATE SET judge_at = 0, touched = excluded.touched
)
-- written even if it is there: whoever is just telling it read the job before this
INSERT INTO changed_job (shard, job_no)
SELECT shard, job_no FROM closed WHERE watched
    ON CONFLICT (shard, job_no) DO UPDATE SET job_no = excluded.job_no;
