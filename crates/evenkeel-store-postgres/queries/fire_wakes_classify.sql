-- Which wakes of a batch are still there?
SELECT w.job_no
  FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int4[], $5::int2[])
       AS d(job_no, due, scheduled_at, sequence, attempt)
  JOIN wake w ON w.shard = (d.job_no & 255)::int2 AND w.due = d.due
   AND w.scheduled_at = d.scheduled_at AND w.job_no = d.job_no AND w.sequence = d.sequence
   AND w.attempt = d.attempt;
