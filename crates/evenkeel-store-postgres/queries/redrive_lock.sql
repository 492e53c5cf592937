-- In the order of the key, after the rows of their jobs: so does everybody who takes letters up.
SELECT job_no, scheduled_at, sequence, redriven_at, new_at, new_sequence
  FROM dead_letter
 WHERE tenant_no = $1
   AND (job_no, scheduled_at, sequence) IN (SELECT * FROM unnest($2::int8[], $3::int8[], $4::int4[]))
 ORDER BY job_no, scheduled_at, sequence FOR UPDATE;
