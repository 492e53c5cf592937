SELECT tenant_no, key, rhythm, jobs, least(cost_us, 9223372036854775807)::int8
  FROM rhythm
 WHERE (tenant_no, key) > ($1, $2) AND jobs > 0
 ORDER BY tenant_no, key LIMIT $3;
