DELETE FROM note n
 USING unnest($1::int8[], $2::int8[], $3::int4[], $4::int2[])
       AS d(job_no, scheduled_at, sequence, attempt)
 WHERE n.scheduled_at = d.scheduled_at AND n.job_no = d.job_no AND n.sequence = d.sequence
   AND n.attempt = d.attempt;
