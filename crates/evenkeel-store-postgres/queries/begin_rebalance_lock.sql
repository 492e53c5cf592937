-- Two that begin at once would not see each other. The tenant's row is what they have in common.
SELECT coalesce($2::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
  FROM tenant WHERE tenant_no = $1 FOR NO KEY UPDATE;
