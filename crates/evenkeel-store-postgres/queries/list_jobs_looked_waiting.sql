SELECT greatest((SELECT count(*) FROM (SELECT FROM ready LIMIT 10001) AS r),
                (SELECT count(*) FROM (SELECT FROM wake LIMIT 10001) AS w))
