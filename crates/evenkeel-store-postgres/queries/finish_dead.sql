-- Letters of runs that ended in this transaction, but for those that somebody wanted ended.
INSERT INTO dead_letter (job_no, scheduled_at, sequence, attempt, tenant_no, died_at, reason, status,
                         error)
SELECT r.job_no, r.scheduled_at, r.sequence, r.attempt, r.tenant_no, r.finished_at, d.reason, r.status,
       left(r.error, 4096)
  FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::int2[], $5::int2[])
       AS d(job_no, scheduled_at, sequence, attempt, reason)
  JOIN run r USING (scheduled_at, job_no, sequence, attempt)
 WHERE NOT r.cancel_asked
    ON CONFLICT (job_no, scheduled_at, sequence) DO NOTHING;
