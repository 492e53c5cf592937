-- Why jobs of a batch did not fire: what was decided on, is it still so, and do they run?
SELECT s.job_no, s.live
  FROM unnest($1::int8[], $2::int4[], $3::int8[], $4::int8[], $5::int4[])
       AS d(job_no, generation, due, head_at, head_sequence)
  JOIN job_state s USING (job_no)
 WHERE s.next_at = d.due AND s.generation = d.generation AND s.active
   AND s.head_at IS NOT DISTINCT FROM d.head_at
   AND s.head_sequence IS NOT DISTINCT FROM d.head_sequence;
