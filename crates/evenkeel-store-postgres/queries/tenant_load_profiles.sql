SELECT tenant_no, key, rhythm, jobs, least(cost_us, 9223372036854775807)::int8
  FROM rhythm
 WHERE tenant_no = $1 AND ($2::int8 IS NULL OR key > $2) AND jobs > 0
 ORDER BY key LIMIT $3;
