SELECT max((SELECT count(*) FROM (SELECT 1 FROM ready LIMIT 10001)),
           (SELECT count(*) FROM (SELECT 1 FROM wake LIMIT 10001)))
