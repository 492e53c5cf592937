-- What has ended meanwhile needs no ending.
WITH running AS MATERIALIZED (
    SELECT c.scheduled_at, c.job_no, c.sequence, c.attempt, r.superseded
      FROM cancellation c JOIN run r USING (scheduled_at, job_no, sequence, attempt)
     WHERE c.node_no = $1 AND r.node_no = $1 AND r.status = 1
), over AS (
    DELETE FROM cancellation c
     WHERE node_no = $1
       AND NOT EXISTS (SELECT FROM running
                        WHERE running.scheduled_at = c.scheduled_at AND running.job_no = c.job_no
                          AND running.sequence = c.sequence AND running.attempt = c.attempt)
)
SELECT scheduled_at, job_no, sequence, attempt, superseded FROM running;
