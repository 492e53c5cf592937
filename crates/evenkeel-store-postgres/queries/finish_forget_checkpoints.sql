DELETE FROM checkpoint c
 USING unnest($1::int8[], $2::int8[], $3::int4[]) AS d(job_no, scheduled_at, sequence)
 WHERE c.scheduled_at = d.scheduled_at AND c.job_no = d.job_no AND c.sequence = d.sequence;
