UPDATE dedup d SET job_id = t.job_id, taken_at = t.taken_at
  FROM unnest($2::uuid[], $3::uuid[], $4::int8[]) AS t(key, job_id, taken_at)
 WHERE d.tenant_no = $1 AND d.key = t.key;
