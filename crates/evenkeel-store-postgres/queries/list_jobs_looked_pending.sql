SELECT greatest((SELECT count(*) FROM (SELECT FROM ready LIMIT 10001) AS r),
                (SELECT count(*) FROM (SELECT FROM wake LIMIT 10001) AS w),
                (SELECT count(*) FROM (SELECT FROM job_state
                                        WHERE tenant_no = $1::int4 AND slot IS NULL AND active
                                        LIMIT 10001) AS s))
