UPDATE ready q SET open_from = d.open_from, open_until = d.open_until
  FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::int2[], $5::int8[], $6::int8[])
       AS d(job_no, scheduled_at, sequence, attempt, open_from, open_until)
 WHERE q.scheduled_at = d.scheduled_at AND q.job_no = d.job_no AND q.sequence = d.sequence
   AND q.attempt = d.attempt;
