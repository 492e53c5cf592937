UPDATE job j SET dedup_key = d.key
  FROM unnest($1::int8[], $2::uuid[]) AS d(job_no, key)
 WHERE j.job_no = d.job_no;
