-- Overriding the outcome of a run.

-- :name active_attempts (id, tenant, limit)
-- What waits and runs of a job, at one moment. What runs is found along the links of its chains, as
-- far back as it has to be and may (as in order_find_running); what is not found there has run for
-- long, and may lie behind chains that retention has cut away.
WITH RECURSIVE j AS MATERIALIZED (
    SELECT s.job_no, s.live, s.head_at, s.head_sequence
      FROM job JOIN job_state s USING (job_no)
     WHERE job.id = :id AND job.tenant_no = :tenant AND job.state <> {job.deleted}
), waiting AS MATERIALIZED (
    SELECT w.*
      FROM j
     CROSS JOIN LATERAL (
           SELECT scheduled_at, job_no, sequence, attempt,
                  CASE WHEN own_priority THEN priority END AS priority
             FROM ready WHERE job_no = j.job_no
            UNION ALL
           SELECT scheduled_at, job_no, sequence, attempt, priority
             FROM delayed_attempt WHERE job_no = j.job_no) AS w
), chain AS (
    SELECT job_no, head_at AS at, head_sequence AS sequence, 0 AS depth,
           live - (SELECT count(*) FROM waiting) AS running
      FROM j WHERE head_at IS NOT NULL
     UNION ALL
    SELECT c.job_no, p.prev_at, p.prev_sequence, c.depth + 1, c.running - p.running
      FROM chain c
     CROSS JOIN LATERAL (SELECT max(prev_at) AS prev_at, max(prev_sequence) AS prev_sequence,
                                count(*) FILTER (WHERE status = {attempt.running}) AS running
                           FROM (SELECT prev_at, prev_sequence, status FROM attempt r
                                  WHERE r.scheduled_at = c.at AND r.job_no = c.job_no
                                    AND r.sequence = c.sequence
                                  UNION ALL
                                 SELECT prev_at, prev_sequence, 0 FROM ready q
                                  WHERE q.scheduled_at = c.at AND q.job_no = c.job_no
                                    AND q.sequence = c.sequence) AS a) AS p
     WHERE p.prev_at IS NOT NULL AND c.running > p.running AND c.depth < 10000
), found AS MATERIALIZED (
    SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.priority, r.fence, r.started_at
      FROM chain c JOIN attempt r ON r.scheduled_at = c.at AND r.job_no = c.job_no
                             AND r.sequence = c.sequence
     WHERE r.status = {attempt.running}
), long AS (
    SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.priority, r.fence, r.started_at
      FROM j JOIN long_attempt l USING (job_no)
      JOIN attempt r ON r.scheduled_at = l.scheduled_at AND r.job_no = l.job_no
                AND r.sequence = l.sequence AND r.attempt = l.attempt
     WHERE r.status = {attempt.running}
       AND (SELECT count(*) FROM found) + (SELECT count(*) FROM waiting) < (SELECT live FROM j)
)
SELECT scheduled_at, job_no, sequence, attempt, priority, NULL::int4 AS fence,
       NULL::int8 AS started_at
  FROM waiting
 UNION ALL
SELECT * FROM (SELECT * FROM found UNION SELECT * FROM long) AS running
 ORDER BY scheduled_at, sequence, attempt
 LIMIT :limit;

-- :name override_begin (
--   scheduled_at, job_no, sequence, attempt, tenant, fence, crashes, prev_at, prev_sequence
-- )
-- What waited runs for the moment until its end is recorded; nobody sees that. One that was handed
-- back has a row, which goes on saying who had it.
INSERT INTO attempt AS r (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, crashes,
                      node_no, prev_at, prev_sequence)
VALUES (:scheduled_at, :job_no, :sequence, :attempt, :tenant, 1, :fence, :crashes, 0, :prev_at, :prev_sequence)
    ON CONFLICT (scheduled_at, job_no, sequence, attempt) DO UPDATE
   SET status = {attempt.running}, fence = excluded.fence, node_no = coalesce(r.node_no, 0)
RETURNING node_no;

-- :name override_changed
-- written even if it is there: whoever is just telling it read the job before this
INSERT INTO changed_job (shard, job_no)
SELECT shard, job_no FROM job_state WHERE job_no = $1
    ON CONFLICT (shard, job_no) DO UPDATE SET job_no = excluded.job_no;

-- :name override_job
SELECT id FROM job WHERE job_no = $1;

-- :name override_link (job_no, head_at, head_sequence)
-- A trigger becomes the newest chain of its job when it is fired; this one never is.
WITH before AS MATERIALIZED (
    SELECT head_at, head_sequence FROM job_state WHERE job_no = :job_no FOR NO KEY UPDATE
), linked AS (
    UPDATE job_state SET head_at = :head_at, head_sequence = :head_sequence WHERE job_no = :job_no
)
SELECT head_at, head_sequence FROM before;

-- :name override_unowned (scheduled_at, job_no, sequence, attempt)
UPDATE attempt SET node_no = NULL
 WHERE scheduled_at = :scheduled_at AND job_no = :job_no AND sequence = :sequence AND attempt = :attempt AND node_no = 0;

-- :name override_node (scheduled_at, job_no, sequence, attempt, tenant, fence)
-- Locked before its job's state, as an end locks them.
SELECT node_no, cancel_requested FROM attempt
 WHERE scheduled_at = :scheduled_at AND job_no = :job_no AND sequence = :sequence AND attempt = :attempt AND tenant_no = :tenant
   AND fence = :fence AND status = {attempt.running}
   FOR NO KEY UPDATE;

-- :name override_running (scheduled_at, job_no, sequence, attempt, tenant, fence)
-- From here on its worker has no say in it.
UPDATE attempt SET fence = fence + 1
 WHERE scheduled_at = :scheduled_at AND job_no = :job_no AND sequence = :sequence AND attempt = :attempt AND tenant_no = :tenant
   AND fence = :fence AND status = {attempt.running}
RETURNING node_no;
