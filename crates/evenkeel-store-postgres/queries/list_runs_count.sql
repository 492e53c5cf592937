-- Counts a tenant's attempts, but not for ever.
SELECT (SELECT count(*) FROM (SELECT FROM run WHERE tenant_no = $1 LIMIT $2) AS r)
     + (SELECT count(*) FROM (SELECT FROM ready q
                               WHERE tenant_no = $1
                                 AND NOT EXISTS (SELECT FROM run e
                                                  WHERE e.scheduled_at = q.scheduled_at
                                                    AND e.job_no = q.job_no
                                                    AND e.sequence = q.sequence
                                                    AND e.attempt = q.attempt)
                               LIMIT $2) AS q);
