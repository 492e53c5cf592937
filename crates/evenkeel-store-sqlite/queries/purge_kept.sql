-- What retention keeps of the past may be cut off from the chains before it.
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt FROM run r
WHERE r.job_no = ?1 AND r.scheduled_at IN (?2, ?3)
  AND NOT EXISTS (SELECT 1 FROM run l
                  WHERE l.scheduled_at = r.scheduled_at AND l.job_no = r.job_no
                    AND l.sequence = r.sequence AND l.status IN (0, 1))
