-- Why jobs of a batch did not fire: what was decided on, is it still so, do they run, and does a
-- retry of theirs wait for its time?
SELECT s.job_no, s.live,
       EXISTS (SELECT FROM wake w WHERE w.job_no = s.job_no AND w.attempt > 0) AS retry_pending
  FROM unnest($1::int8[], $2::int4[], $3::int8[], $4::int8[], $5::int4[])
       AS d(job_no, generation, due, head_at, head_sequence)
  JOIN job_state s USING (job_no)
 WHERE s.next_at = d.due AND s.generation = d.generation AND s.active
   AND s.head_at IS NOT DISTINCT FROM d.head_at
   AND s.head_sequence IS NOT DISTINCT FROM d.head_sequence;
