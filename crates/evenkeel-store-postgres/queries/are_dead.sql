SELECT d.scheduled_at, d.job_no, d.sequence, d.attempt
  FROM unnest($1::int8[], $2::int8[], $3::int4[]) AS w(job_no, scheduled_at, sequence)
  JOIN dead_letter d USING (job_no, scheduled_at, sequence);
