SELECT count(*)
  FROM (SELECT
          FROM generate_series(0, 255) AS h(shard)
         CROSS JOIN LATERAL (SELECT FROM job_state
                              WHERE shard = h.shard
                                AND slot BETWEEN coalesce(($11::int8 / 900000000)::int4, -2147483648)
                                             AND coalesce(($12::int8 / 900000000)::int4, 2147483647)
                              LIMIT 10001) AS s
         LIMIT 10001) AS s
