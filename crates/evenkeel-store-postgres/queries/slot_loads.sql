-- $3 jobs of a slot are looked at, whoever's they are: the limit comes before the tenant. One more
-- only tells whether these were all. The index on slots has the shard first: each slot is looked up
-- in all of them.
SELECT l.jobs, l.counted_all
  FROM unnest($2::int4[]) WITH ORDINALITY AS d(slot, nth)
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE f.nth <= $3::int8 AND f.tenant_no = $1) AS jobs,
              count(*) <= $3::int8 AS counted_all
         FROM (SELECT s.tenant_no, row_number() OVER () AS nth
                 FROM (SELECT s.tenant_no
                         FROM generate_series(0, 255) AS h(shard)
                        CROSS JOIN LATERAL (SELECT tenant_no FROM job_state
                                             WHERE shard = h.shard AND slot = d.slot
                                             LIMIT $3::int8 + 1) AS s
                        LIMIT $3::int8 + 1) AS s) AS f) AS l
 ORDER BY d.nth;
