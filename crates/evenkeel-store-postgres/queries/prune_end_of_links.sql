-- The last chain of a job that the links lead to, and where its own link points.
WITH RECURSIVE chain AS (
    SELECT r.scheduled_at, r.sequence, r.prev_at, r.prev_sequence, 0 AS depth
      FROM job_state s
      JOIN run r ON r.scheduled_at = s.head_at AND r.job_no = s.job_no
                AND r.sequence = s.head_sequence AND r.attempt = 0
     WHERE s.job_no = $1
     UNION ALL
    SELECT r.scheduled_at, r.sequence, r.prev_at, r.prev_sequence, c.depth + 1
      FROM chain c
      JOIN run r ON r.scheduled_at = c.prev_at AND r.job_no = $1 AND r.sequence = c.prev_sequence
                AND r.attempt = 0
)
SELECT scheduled_at, sequence, prev_at, prev_sequence FROM chain ORDER BY depth DESC LIMIT 1;
