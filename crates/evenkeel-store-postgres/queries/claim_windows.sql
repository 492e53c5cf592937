-- When a queued attempt may be claimed.

-- :name closed
-- Found by ready_open_until, longest closed first.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
)
SELECT q.scheduled_at, q.job_no, q.sequence, q.attempt, s.average_us, j.definition
  FROM (SELECT * FROM ready
         WHERE open_until <= (SELECT now FROM clock)
           AND (job_no & 255)::int2 = ANY ($2::int2[])
         ORDER BY open_until LIMIT $3) AS q
  JOIN job_state s USING (job_no) JOIN job j USING (job_no);

-- :name reopen
-- From the batch to the rows, whatever the planner thinks of a queue that is empty most of the
-- time. What somebody is claiming needs no opening.
WITH waiting AS MATERIALIZED (
    SELECT q.pool, q.lane, q.priority, q.should_start_by, q.since, q.scheduled_at, q.job_no,
           q.sequence, q.attempt, q.tenant_no, d.open_from, d.open_until, q.rise
      FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::int2[], $5::int8[], $6::int8[])
           AS d(job_no, scheduled_at, sequence, attempt, open_from, open_until)
     CROSS JOIN LATERAL (SELECT * FROM ready q
                          WHERE q.scheduled_at = d.scheduled_at AND q.job_no = d.job_no
                            AND q.sequence = d.sequence AND q.attempt = d.attempt
                            FOR UPDATE SKIP LOCKED) AS q
)
-- They are there, and locked.
INSERT INTO ready (pool, lane, priority, should_start_by, since, scheduled_at, job_no, sequence,
                   attempt, tenant_no, open_from, open_until, rise)
SELECT * FROM waiting
    ON CONFLICT (scheduled_at, job_no, sequence, attempt) DO UPDATE
   SET open_from = excluded.open_from, open_until = excluded.open_until;
