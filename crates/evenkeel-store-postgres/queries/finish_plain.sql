-- The common batch: chains end, all of them well, with no results to keep, no job to stop and no time to
-- move. Each job is in the batch once. The arithmetic is that of core's History::after.
WITH ended AS (
    UPDATE run r SET status = d.status, finished_at = d.finished_at
      FROM unnest($3::int8[], $4::int8[], $5::int4[], $6::int2[], $7::int4[], $8::int2[],
                  $9::int8[], $10::int8[])
           AS d(job_no, scheduled_at, sequence, attempt, fence, status, started_at, finished_at)
     WHERE r.scheduled_at = d.scheduled_at AND r.job_no = d.job_no AND r.sequence = d.sequence
       AND r.attempt = d.attempt AND r.node_no = $1 AND r.fence = d.fence AND r.status = 1
 RETURNING r.job_no, r.scheduled_at, d.status, d.started_at, d.finished_at,
           greatest(d.finished_at - d.started_at, 0) AS took
), told AS (
    UPDATE job_state s
       SET live = greatest(s.live - 1, 0),
           last_status = e.status, last_start_at = e.started_at, last_end_at = e.finished_at,
           last_good_start_at = e.started_at, last_good_end_at = e.finished_at, failures = 0,
           -- half a microsecond is rounded up, where round() would look for an even number
           average_us = CASE WHEN s.average_us IS NULL AND $2::float8 > 0 THEN e.took
                             ELSE floor(s.average_us + $2::float8 * (e.took - s.average_us) + 0.5)::int8 END,
           variance = CASE WHEN s.average_us IS NULL THEN (1 - $2::float8) * s.variance
                           ELSE (1 - $2::float8) * (s.variance + $2 * (e.took - s.average_us)::float8
                                                            * (e.took - s.average_us)::float8) END,
           good_at = e.scheduled_at, good_runs = s.good_runs + 1
      FROM ended e
     WHERE s.job_no = e.job_no
 RETURNING s.job_no, s.tenant_no, s.shard, s.watched
), touched AS (
    -- mostly none
    INSERT INTO watch (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM told WHERE watched
        ON CONFLICT (job_no) DO UPDATE SET judge_at = 0, touched = excluded.touched
)
SELECT array_agg(job_no) FROM ended;
