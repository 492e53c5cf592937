-- How many of those who have places really run.
SELECT k.nth, (SELECT count(*) FROM place p
                WHERE p.key = k.key
                  AND (SELECT e.status FROM run e
                        WHERE e.scheduled_at = p.scheduled_at AND e.job_no = p.job_no
                          AND e.sequence = p.sequence AND e.attempt = p.attempt) = 1)
  FROM unnest($1::bytea[]) WITH ORDINALITY AS k(key, nth);
