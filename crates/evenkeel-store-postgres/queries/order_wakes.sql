INSERT INTO wake (shard, due, scheduled_at, job_no, sequence, attempt, tenant_no)
SELECT (d.job_no & 255)::int2, d.at, d.at, d.job_no, d.sequence, 0, $1
  FROM unnest($2::int8[], $3::int8[], $4::int4[]) AS d(job_no, at, sequence);
