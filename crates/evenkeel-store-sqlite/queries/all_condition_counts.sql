SELECT coalesce(sum(job_count), 0), coalesce(sum(warnings), 0), coalesce(sum(errors), 0) FROM tenant
