SELECT max((SELECT count(*) FROM (SELECT 1 FROM ready LIMIT 10001)),
           (SELECT count(*) FROM (SELECT 1 FROM wake LIMIT 10001)),
           (SELECT count(*) FROM (SELECT 1 FROM job_state
                                  WHERE tenant_no = ?1 AND slot IS NULL AND active = 1
                                  LIMIT 10001)))
