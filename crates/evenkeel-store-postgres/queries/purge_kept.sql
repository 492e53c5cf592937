-- What retention keeps of the past may be cut off from the chains before it.
SELECT DISTINCT r.scheduled_at, r.sequence
  FROM job_state s
  JOIN run r ON r.job_no = s.job_no AND r.scheduled_at IN (s.good_at, s.failed_at)
 WHERE s.job_no = $1
   AND NOT EXISTS (SELECT FROM run l
                    WHERE l.scheduled_at = r.scheduled_at AND l.job_no = r.job_no
                      AND l.sequence = r.sequence AND l.status IN (0, 1));
