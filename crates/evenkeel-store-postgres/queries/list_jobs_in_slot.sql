-- $17 is one shard, or NULL for all.
SELECT s.job_no
  FROM generate_series(coalesce($17::int4, 0), coalesce($17::int4, 255)) AS h(shard)
 CROSS JOIN LATERAL (SELECT job_no, tenant_no FROM job_state
                      WHERE shard = h.shard AND slot = $16::int4) AS s
 WHERE s.tenant_no = $1::int4
