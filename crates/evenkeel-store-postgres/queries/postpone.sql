UPDATE wake w SET due = d.until
  FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int4[], $5::int2[], $6::int8[])
       AS d(job_no, due, scheduled_at, sequence, attempt, until)
 WHERE w.shard = (d.job_no & 255)::int2 AND w.due = d.due AND w.scheduled_at = d.scheduled_at
   AND w.job_no = d.job_no AND w.sequence = d.sequence AND w.attempt = d.attempt;
