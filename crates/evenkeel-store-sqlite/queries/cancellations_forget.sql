-- What has ended meanwhile needs no ending.
DELETE FROM cancellation WHERE node_no = ?1 AND NOT EXISTS (
    SELECT 1 FROM run r
    WHERE r.scheduled_at = cancellation.scheduled_at AND r.job_no = cancellation.job_no
      AND r.sequence = cancellation.sequence AND r.attempt = cancellation.attempt
      AND r.node_no = ?1 AND r.status = 1)
