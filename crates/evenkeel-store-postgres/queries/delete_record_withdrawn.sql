-- Attempts that waited are over. One that had been given back has a row already.
INSERT INTO run (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, crashes,
                 prev_at, prev_sequence, finished_at)
SELECT d.scheduled_at, d.job_no, d.sequence, d.attempt, $1, 4, d.fence, d.crashes, d.prev_at,
       d.prev_sequence, $2
  FROM unnest($3::int8[], $4::int8[], $5::int4[], $6::int2[], $7::int4[], $8::int2[], $9::int8[],
              $10::int4[])
       AS d(job_no, scheduled_at, sequence, attempt, fence, crashes, prev_at, prev_sequence)
    ON CONFLICT (scheduled_at, job_no, sequence, attempt) DO UPDATE
   SET status = 4, finished_at = excluded.finished_at;
