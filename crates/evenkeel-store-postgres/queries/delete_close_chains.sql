WITH closed AS (
    UPDATE job_state s SET live = d.live, head_at = d.head_at, head_sequence = d.head_sequence
      FROM unnest($1::int8[], $2::int4[], $3::int8[], $4::int4[])
           AS d(job_no, live, head_at, head_sequence)
     WHERE s.job_no = d.job_no
 RETURNING s.job_no, s.tenant_no, s.shard, s.watched
)
INSERT INTO watch (job_no, tenant_no, shard, judge_at)
SELECT job_no, tenant_no, shard, 0 FROM closed WHERE watched
    ON CONFLICT (job_no) DO UPDATE SET judge_at = 0, touched = excluded.touched;
