-- Counts a failure of each job, whose row in job_state this transaction has locked. Each job is in the
-- batch once.
INSERT INTO failing AS f (job_no, runs, good_runs, is_due)
SELECT s.job_no, 1, s.good_runs, d.pause_after <= 1
  FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::int2[], $5::int4[])
       AS d(job_no, scheduled_at, sequence, attempt, pause_after)
  JOIN run r USING (scheduled_at, job_no, sequence, attempt)
  JOIN job_state s USING (job_no)
 WHERE NOT r.cancel_asked AND s.stopped_at IS DISTINCT FROM 9223372036854775807
    ON CONFLICT (job_no) DO UPDATE
   SET runs = CASE WHEN f.good_runs = excluded.good_runs THEN f.runs + 1 ELSE 1 END,
       good_runs = excluded.good_runs,
       is_due = CASE WHEN f.good_runs = excluded.good_runs THEN f.runs + 1 ELSE 1 END
                >= (SELECT d.pause_after
                      FROM unnest($1::int8[], $5::int4[]) AS d(job_no, pause_after)
                     WHERE d.job_no = f.job_no);
