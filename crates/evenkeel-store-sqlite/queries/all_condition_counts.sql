SELECT coalesce(sum(job_count), 0), coalesce(sum(warnings), 0), coalesce(sum(errors), 0),
       (SELECT count(*) FROM (SELECT 1 FROM watch WHERE reason = 9 LIMIT 10000))
FROM tenant
