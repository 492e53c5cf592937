DELETE FROM dead_letter d
 USING unnest($2::int8[], $3::int8[], $4::int4[]) AS w(job_no, scheduled_at, sequence)
 WHERE d.tenant_no = $1 AND d.job_no = w.job_no AND d.scheduled_at = w.scheduled_at
   AND d.sequence = w.sequence
RETURNING d.scheduled_at, d.job_no, d.sequence, d.attempt;
