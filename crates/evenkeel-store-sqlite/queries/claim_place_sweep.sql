-- Places whose attempts do not run any more, or not yet again.
DELETE FROM place
WHERE key = ?1
  AND NOT EXISTS (SELECT 1 FROM run r
                  WHERE r.scheduled_at = place.scheduled_at AND r.job_no = place.job_no
                    AND r.sequence = place.sequence AND r.attempt = place.attempt
                    AND r.status = 1)
