-- An attempt that has ended never runs again.
DELETE FROM place
WHERE key = ?1 AND scheduled_at = ?2 AND job_no = ?3 AND sequence = ?4 AND attempt = ?5
  AND NOT EXISTS (SELECT 1 FROM run r
                  WHERE r.scheduled_at = ?2 AND r.job_no = ?3 AND r.sequence = ?4
                    AND r.attempt = ?5 AND r.status IN (0, 1))
