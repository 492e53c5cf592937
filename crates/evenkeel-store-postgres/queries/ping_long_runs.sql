-- Only what differs is written.
WITH d AS MATERIALIZED (
    SELECT * FROM unnest($3::int8[], $4::int8[], $5::int4[], $6::int2[], $7::int4[], $8::int8[])
                  AS d(job_no, scheduled_at, sequence, attempt, fence, started_at)
), gone AS (
    DELETE FROM long_run l
     WHERE node_no = $1
       AND NOT EXISTS (SELECT FROM d
                        WHERE d.scheduled_at = l.scheduled_at AND d.job_no = l.job_no
                          AND d.sequence = l.sequence AND d.attempt = l.attempt)
)
INSERT INTO long_run (node_no, scheduled_at, job_no, sequence, attempt, fence, started_at,
                      last_ping_at)
SELECT $1, scheduled_at, job_no, sequence, attempt, fence, started_at, $2 FROM d
    ON CONFLICT (node_no, scheduled_at, job_no, sequence, attempt) DO UPDATE
   SET fence = excluded.fence, started_at = excluded.started_at,
       last_ping_at = excluded.last_ping_at
 WHERE (long_run.fence, long_run.started_at)
       IS DISTINCT FROM (excluded.fence, excluded.started_at);
