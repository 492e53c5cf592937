-- The first attempts of a deleted job's chains that still go on, locked: their links may change.
-- Whoever ends an attempt locks its row before the job's state, so this comes first. None is added,
-- since nothing of the job begins any more.
WITH RECURSIVE chain AS (
    SELECT s.job_no, s.head_at AS at, s.head_sequence AS sequence, 0 AS depth
      FROM job j JOIN job_state s USING (job_no)
     WHERE j.id = $1 AND j.tenant_no = $2 AND j.standing = 3 AND s.head_at IS NOT NULL
     UNION ALL
    SELECT c.job_no, r.prev_at, r.prev_sequence, c.depth + 1
      FROM chain c JOIN run r ON r.scheduled_at = c.at AND r.job_no = c.job_no
                             AND r.sequence = c.sequence AND r.attempt = 0
     WHERE r.prev_at IS NOT NULL AND c.depth < $3::int8
)
SELECT r.scheduled_at, r.sequence
  FROM chain c JOIN run r ON r.scheduled_at = c.at AND r.job_no = c.job_no
                         AND r.sequence = c.sequence AND r.attempt = 0
 WHERE EXISTS (SELECT FROM run l
                WHERE l.scheduled_at = c.at AND l.job_no = c.job_no AND l.sequence = c.sequence
                  AND l.status IN (0, 1))
 ORDER BY r.scheduled_at, r.sequence
   FOR NO KEY UPDATE OF r;
