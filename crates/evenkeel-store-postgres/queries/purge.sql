-- Deleting the history of deleted jobs.

-- :name purge_dead
DELETE FROM dead_letter
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM dead_letter WHERE job_no = $1 LIMIT $2));

-- :name purge_delete
WITH d AS MATERIALIZED (
    SELECT * FROM unnest($2::int8[], $3::int4[]) AS d(at, sequence)
), gone AS (
    DELETE FROM attempt r USING d
     WHERE r.scheduled_at = d.at AND r.job_no = $1 AND r.sequence = d.sequence
 RETURNING r.job_no
), unsaid AS (
    DELETE FROM note n USING d
     WHERE n.scheduled_at = d.at AND n.job_no = $1 AND n.sequence = d.sequence
), unsaved AS (
    DELETE FROM checkpoint c USING d
     WHERE c.scheduled_at = d.at AND c.job_no = $1 AND c.sequence = d.sequence
)
SELECT count(*) FROM gone;

-- :name purge_head
UPDATE job_state SET head_at = $2, head_sequence = $3 WHERE job_no = $1;

-- :name purge_kept
-- What retention keeps of the past may be cut off from the chains before it.
SELECT DISTINCT r.scheduled_at, r.sequence
  FROM job_state s
  JOIN attempt r ON r.job_no = s.job_no AND r.scheduled_at IN (s.succeeded_at, s.failed_at)
 WHERE s.job_no = $1
   AND NOT EXISTS (SELECT FROM attempt l
                    WHERE l.scheduled_at = r.scheduled_at AND l.job_no = r.job_no
                      AND l.sequence = r.sequence AND l.status IN (0, 1));

-- :name purge_lock
SELECT s.job_no FROM job j JOIN job_state s USING (job_no)
 WHERE j.id = $1 AND j.tenant_no = $2 AND j.state = 3
   FOR NO KEY UPDATE OF s;

-- :name purge_lock_runs
-- The first attempts of a deleted job's chains that still go on, locked: their links may change.
-- Whoever ends an attempt locks its row before the job's state, so this comes first. None is added,
-- since nothing of the job begins any more.
WITH RECURSIVE chain AS (
    SELECT s.job_no, s.head_at AS at, s.head_sequence AS sequence, 0 AS depth
      FROM job j JOIN job_state s USING (job_no)
     WHERE j.id = $1 AND j.tenant_no = $2 AND j.state = 3 AND s.head_at IS NOT NULL
     UNION ALL
    SELECT c.job_no, r.prev_at, r.prev_sequence, c.depth + 1
      FROM chain c JOIN attempt r ON r.scheduled_at = c.at AND r.job_no = c.job_no
                             AND r.sequence = c.sequence AND r.attempt = 0
     WHERE r.prev_at IS NOT NULL AND c.depth < $3::int8
)
SELECT r.scheduled_at, r.sequence
  FROM chain c JOIN attempt r ON r.scheduled_at = c.at AND r.job_no = c.job_no
                         AND r.sequence = c.sequence AND r.attempt = 0
 WHERE EXISTS (SELECT FROM attempt l
                WHERE l.scheduled_at = c.at AND l.job_no = c.job_no AND l.sequence = c.sequence
                  AND l.status IN (0, 1))
 ORDER BY r.scheduled_at, r.sequence
   FOR NO KEY UPDATE OF r;

-- :name purge_find
-- The newest chains of a job, how many attempts each has, and whether it still goes on.
WITH RECURSIVE chain AS (
    SELECT head_at AS at, head_sequence AS sequence, 0 AS depth
      FROM job_state WHERE job_no = $1 AND head_at IS NOT NULL
     UNION ALL
    SELECT r.prev_at, r.prev_sequence, c.depth + 1
      FROM chain c JOIN attempt r ON r.scheduled_at = c.at AND r.job_no = $1
                             AND r.sequence = c.sequence AND r.attempt = 0
     WHERE r.prev_at IS NOT NULL AND c.depth < $2::int8
)
SELECT c.at, c.sequence, a.attempts, a.open > 0
  FROM chain c
 CROSS JOIN LATERAL (SELECT count(*) AS attempts,
                            count(*) FILTER (WHERE status IN (0, 1)) AS open
                       FROM attempt r
                      WHERE r.scheduled_at = c.at AND r.job_no = $1
                        AND r.sequence = c.sequence) AS a
 ORDER BY c.depth;
