-- Deleting the history of deleted jobs.

-- :name purge_dead (job_no, limit)
DELETE FROM dead_letter
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM dead_letter WHERE job_no = :job_no LIMIT :limit));

-- :name purge_delete (job_no, scheduled_at, sequence)
WITH d AS MATERIALIZED (
    SELECT * FROM unnest(:scheduled_at::int8[], :sequence::int4[]) AS d(at, sequence)
), deleted AS (
    DELETE FROM attempt r USING d
     WHERE r.scheduled_at = d.at AND r.job_no = :job_no AND r.sequence = d.sequence
 RETURNING r.job_no
), notes AS (
    DELETE FROM note n USING d
     WHERE n.scheduled_at = d.at AND n.job_no = :job_no AND n.sequence = d.sequence
), checkpoints AS (
    DELETE FROM checkpoint c USING d
     WHERE c.scheduled_at = d.at AND c.job_no = :job_no AND c.sequence = d.sequence
)
SELECT count(*) FROM deleted;

-- :name set_job_head (job_no, head_at, head_sequence)
UPDATE job_state SET head_at = :head_at, head_sequence = :head_sequence WHERE job_no = :job_no;

-- :name purge_kept
-- Attempts that pruning has kept, to which no link may lead.
SELECT DISTINCT r.scheduled_at, r.sequence
  FROM job_state s
  JOIN attempt r ON r.job_no = s.job_no AND r.scheduled_at IN (s.succeeded_at, s.failed_at)
 WHERE s.job_no = $1
   AND NOT EXISTS (SELECT FROM attempt l
                    WHERE l.scheduled_at = r.scheduled_at AND l.job_no = r.job_no
                      AND l.sequence = r.sequence AND l.status IN ({attempts.unfinished}));

-- :name purge_lock (id, tenant)
SELECT s.job_no FROM job j JOIN job_state s USING (job_no)
 WHERE j.id = :id AND j.tenant_no = :tenant AND j.state = {job.deleted}
   FOR NO KEY UPDATE OF s;

-- :name purge_lock_runs (id, tenant, depth)
-- Locks the first attempts of the active runs of a deleted job, because their links may change.
-- Finishing locks the attempt before the job's state, so this statement comes before the lock on
-- the state. No run is added in the meantime, because a deleted job starts none.
WITH RECURSIVE linked_run AS (
    SELECT s.job_no, s.head_at AS at, s.head_sequence AS sequence, 0 AS depth
      FROM job j JOIN job_state s USING (job_no)
     WHERE j.id = :id AND j.tenant_no = :tenant AND j.state = {job.deleted}
       AND s.head_at IS NOT NULL
     UNION ALL
    SELECT c.job_no, r.prev_at, r.prev_sequence, c.depth + 1
      FROM linked_run c JOIN attempt r ON r.scheduled_at = c.at AND r.job_no = c.job_no
                             AND r.sequence = c.sequence AND r.attempt = 0
     WHERE r.prev_at IS NOT NULL AND c.depth < :depth::int8
)
SELECT r.scheduled_at, r.sequence
  FROM linked_run c JOIN attempt r ON r.scheduled_at = c.at AND r.job_no = c.job_no
                         AND r.sequence = c.sequence AND r.attempt = 0
 WHERE EXISTS (SELECT FROM attempt l
                WHERE l.scheduled_at = c.at AND l.job_no = c.job_no AND l.sequence = c.sequence
                  AND l.status IN ({attempts.unfinished}))
 ORDER BY r.scheduled_at, r.sequence
   FOR NO KEY UPDATE OF r;

-- :name purge_find (job_no, depth)
-- Returns the newest runs of a job, their number of attempts, and whether they are active.
WITH RECURSIVE linked_run AS (
    SELECT head_at AS at, head_sequence AS sequence, 0 AS depth
      FROM job_state WHERE job_no = :job_no AND head_at IS NOT NULL
     UNION ALL
    SELECT r.prev_at, r.prev_sequence, c.depth + 1
      FROM linked_run c JOIN attempt r ON r.scheduled_at = c.at AND r.job_no = :job_no
                             AND r.sequence = c.sequence AND r.attempt = 0
     WHERE r.prev_at IS NOT NULL AND c.depth < :depth::int8
)
SELECT c.at, c.sequence, a.attempts, a.open > 0 AS is_active
  FROM linked_run c
 CROSS JOIN LATERAL (SELECT count(*) AS attempts,
                            count(*) FILTER (WHERE status IN ({attempts.unfinished})) AS open
                       FROM attempt r
                      WHERE r.scheduled_at = c.at AND r.job_no = :job_no
                        AND r.sequence = c.sequence) AS a
 ORDER BY c.depth;
