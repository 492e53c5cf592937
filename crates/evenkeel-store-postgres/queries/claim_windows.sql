-- Claim windows: when a queued attempt may be claimed.

-- :name find_closed_windows (now, shards, limit)
-- Reads the index ready_open_until; windows that closed first come first.
WITH clock AS MATERIALIZED (SELECT {clock} AS now)
SELECT q.scheduled_at, q.job_no, q.sequence, q.attempt, s.average_us, j.definition
  FROM (SELECT * FROM ready
         WHERE open_until <= (SELECT now FROM clock)
           AND (job_no & 255)::int2 = ANY (:shards::int2[])
         ORDER BY open_until LIMIT :limit) AS q
  JOIN job_state s USING (job_no) JOIN job j USING (job_no);

-- :name set_claim_windows (job_no, scheduled_at, sequence, attempt, open_from, open_until)
-- The statement joins from the batch to the rows, whatever the planner estimates for a queue that
-- is mostly empty. Attempts that are being claimed need no new claim window.
WITH waiting AS MATERIALIZED (
    SELECT q.pool, q.lane, q.priority, q.should_start_by, q.since, q.scheduled_at, q.job_no,
           q.sequence, q.attempt, q.tenant_no, d.open_from, d.open_until, q.rise
      FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[], :attempt::int2[],
                  :open_from::int8[], :open_until::int8[])
           AS d(job_no, scheduled_at, sequence, attempt, open_from, open_until)
     CROSS JOIN LATERAL (SELECT * FROM ready q
                          WHERE q.scheduled_at = d.scheduled_at AND q.job_no = d.job_no
                            AND q.sequence = d.sequence AND q.attempt = d.attempt
                            FOR UPDATE SKIP LOCKED) AS q
)
-- The rows exist and are locked, so this INSERT only updates them.
INSERT INTO ready (pool, lane, priority, should_start_by, since, scheduled_at, job_no, sequence,
                   attempt, tenant_no, open_from, open_until, rise)
SELECT * FROM waiting
    ON CONFLICT (scheduled_at, job_no, sequence, attempt) DO UPDATE
   SET open_from = excluded.open_from, open_until = excluded.open_until;
