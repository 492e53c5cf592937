-- Attempts that had been ended before by this very owner.
SELECT r.job_no
  FROM unnest($2::int8[], $3::int8[], $4::int4[], $5::int2[], $6::int4[])
       AS d(job_no, scheduled_at, sequence, attempt, fence)
  JOIN run r USING (scheduled_at, job_no, sequence, attempt)
 WHERE r.node_no = $1 AND r.fence = d.fence AND r.status NOT IN (0, 1);
