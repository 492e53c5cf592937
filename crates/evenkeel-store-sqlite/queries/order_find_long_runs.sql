SELECT l.node_no, l.scheduled_at, l.job_no, l.sequence, l.attempt FROM long_run l
JOIN run r ON r.scheduled_at = l.scheduled_at AND r.job_no = l.job_no
          AND r.sequence = l.sequence AND r.attempt = l.attempt
WHERE l.job_no = ?1 AND r.node_no = l.node_no AND r.status = 1
