-- IN and not EXISTS: the small table is looked at once, not once for each wake.
SELECT s.job_no, s.tenant_no, CASE WHEN s.active THEN s.next_at END AS next_at, s.generation, s.live,
       s.head_at, s.head_sequence, s.average_us, j.definition, w.due, w.scheduled_at, w.sequence, w.attempt,
       (w.scheduled_at, w.job_no, w.sequence) IN (SELECT scheduled_at, job_no, sequence FROM checkpoint)
  FROM (SELECT * FROM wake WHERE shard = ANY ($1::int2[]) AND due <= $2
         ORDER BY due, scheduled_at, job_no, sequence, attempt LIMIT $3) AS w
  JOIN job_state s USING (job_no) JOIN job j USING (job_no)
 ORDER BY w.due, w.scheduled_at, w.job_no, w.sequence, w.attempt;
