SELECT coalesce(sum(job_count), 0)::int8, coalesce(sum(warnings), 0)::int8,
       coalesce(sum(errors), 0)::int8,
       (SELECT count(*) FROM (SELECT FROM watch WHERE reason = 9 LIMIT 10000) AS h)
  FROM tenant;
