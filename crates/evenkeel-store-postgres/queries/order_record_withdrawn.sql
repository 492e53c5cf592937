-- Attempts that waited are over. One that had been given back has a row already.
INSERT INTO run (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, crashes,
                 prev_at, prev_sequence, finished_at)
SELECT d.scheduled_at, d.job_no, d.sequence, d.attempt, d.tenant_no, $1, d.fence, d.crashes,
       d.prev_at, d.prev_sequence, $2
  FROM unnest($3::int8[], $4::int8[], $5::int4[], $6::int2[], $7::int4[], $8::int4[], $9::int2[],
              $10::int8[], $11::int4[])
       AS d(job_no, scheduled_at, sequence, attempt, tenant_no, fence, crashes, prev_at,
            prev_sequence)
    ON CONFLICT (scheduled_at, job_no, sequence, attempt) DO UPDATE
   SET status = excluded.status, finished_at = excluded.finished_at;
