SELECT count(*)
  FROM (SELECT
          FROM generate_series(coalesce($2::int4, 0), coalesce($2::int4, 255)) AS h(shard)
         CROSS JOIN LATERAL (SELECT FROM job_state WHERE shard = h.shard AND slot = $1::int4
                              LIMIT 10001) AS s
         LIMIT 10001) AS s
