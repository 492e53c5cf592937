SELECT d.scheduled_at, d.job_no, d.sequence, d.attempt, j.id, j.name, d.died_at, d.reason, d.status,
       d.error, d.redriven_at, d.new_at, d.new_sequence
  FROM unnest($2::int8[], $3::int8[], $4::int4[]) AS w(job_no, scheduled_at, sequence)
  JOIN dead_letter d USING (job_no, scheduled_at, sequence) JOIN job j USING (job_no)
 WHERE d.tenant_no = $1;
