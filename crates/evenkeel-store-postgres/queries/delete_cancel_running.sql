-- Finds what runs of a job along the links of its chains, as far back as it has to and may.
WITH RECURSIVE chain AS (
    SELECT head_at AS at, head_sequence AS sequence, 0 AS depth, 0::int8 AS found
      FROM job_state WHERE job_no = $1 AND head_at IS NOT NULL
     UNION ALL
    SELECT p.prev_at, p.prev_sequence, c.depth + 1, c.found + p.running
      FROM chain c
     CROSS JOIN LATERAL (SELECT max(prev_at) FILTER (WHERE attempt = 0) AS prev_at,
                                max(prev_sequence) FILTER (WHERE attempt = 0) AS prev_sequence,
                                count(*) FILTER (WHERE status = 1) AS running
                           FROM run
                          WHERE scheduled_at = c.at AND job_no = $1 AND sequence = c.sequence) AS p
     WHERE p.prev_at IS NOT NULL AND c.found + p.running < $2 AND c.depth < 10000
), running AS (
    SELECT r.node_no, r.scheduled_at, r.job_no, r.sequence, r.attempt
      FROM chain c JOIN run r ON r.scheduled_at = c.at AND r.job_no = $1 AND r.sequence = c.sequence
     WHERE r.status = 1
), asked AS (
    INSERT INTO cancellation (node_no, scheduled_at, job_no, sequence, attempt)
    SELECT * FROM running ON CONFLICT DO NOTHING
)
SELECT scheduled_at, job_no, sequence, attempt FROM running;
