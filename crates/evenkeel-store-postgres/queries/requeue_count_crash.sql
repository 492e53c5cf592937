-- Their rows are locked: they have just ended in this transaction.
UPDATE run r
   SET crashes = r.crashes + 1
  FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::int2[])
       AS d(job_no, scheduled_at, sequence, attempt)
 WHERE r.scheduled_at = d.scheduled_at AND r.job_no = d.job_no AND r.sequence = d.sequence
   AND r.attempt = d.attempt;
