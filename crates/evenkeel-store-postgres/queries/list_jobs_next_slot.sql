SELECT min(s.slot)
  FROM generate_series(0, 255) AS h(shard)
 CROSS JOIN LATERAL (SELECT slot FROM job_state WHERE shard = h.shard AND slot >= $1::int4
                      ORDER BY slot LIMIT 1) AS s
