-- The index on slots has the shard first: each slot is looked up in all of them.
SELECT (SELECT count(*)
          FROM (SELECT FROM generate_series(0, 255) AS h(shard)
                 CROSS JOIN LATERAL (SELECT FROM job_state s
                                      WHERE s.shard = h.shard AND s.slot = d.slot
                                        AND s.tenant_no = $1
                                      LIMIT $3) AS s
                 LIMIT $3) AS load)
  FROM unnest($2::int4[]) WITH ORDINALITY AS d(slot, nth)
 ORDER BY d.nth;
