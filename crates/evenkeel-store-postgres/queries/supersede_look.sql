-- Has an attempt begun, or does one wait?
SELECT s.job_no, s.executions,
       EXISTS (SELECT FROM ready q WHERE q.job_no = s.job_no)
    OR EXISTS (SELECT FROM wake w WHERE w.job_no = s.job_no)
  FROM unnest($1::int8[], $2::int4[], $3::int8[]) AS d(job_no, generation, due)
  JOIN job_state s USING (job_no)
 WHERE s.generation = d.generation AND s.next_at = d.due;
