SELECT coalesce(sum(job_count), 0)::int8, coalesce(sum(warnings), 0)::int8,
       coalesce(sum(errors), 0)::int8
  FROM tenant;
