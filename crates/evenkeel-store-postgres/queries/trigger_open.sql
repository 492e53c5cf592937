WITH opened AS (
    UPDATE job_state SET live = live + 1 WHERE job_no = $1
 RETURNING shard, job_no, tenant_no, watched
), touched AS (
    INSERT INTO watch (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM opened WHERE watched
        ON CONFLICT (job_no) DO UPDATE SET judge_at = 0, touched = excluded.touched
)
INSERT INTO wake (shard, due, scheduled_at, job_no, sequence, attempt, tenant_no, priority)
SELECT shard, $2, $2, job_no, $3, 0, tenant_no, $4::int2 FROM opened;
