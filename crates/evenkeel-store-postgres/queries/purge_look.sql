-- The newest chains of a job, how many attempts each has, and whether it still goes on.
WITH RECURSIVE chain AS (
    SELECT head_at AS at, head_sequence AS sequence, 0 AS depth
      FROM job_state WHERE job_no = $1 AND head_at IS NOT NULL
     UNION ALL
    SELECT r.prev_at, r.prev_sequence, c.depth + 1
      FROM chain c JOIN run r ON r.scheduled_at = c.at AND r.job_no = $1
                             AND r.sequence = c.sequence AND r.attempt = 0
     WHERE r.prev_at IS NOT NULL AND c.depth < $2::int8
)
SELECT c.at, c.sequence, a.attempts, a.open > 0
  FROM chain c
 CROSS JOIN LATERAL (SELECT count(*) AS attempts,
                            count(*) FILTER (WHERE status IN (0, 1)) AS open
                       FROM run r
                      WHERE r.scheduled_at = c.at AND r.job_no = $1
                        AND r.sequence = c.sequence) AS a
 ORDER BY c.depth;
