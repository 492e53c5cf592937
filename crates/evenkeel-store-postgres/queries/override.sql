-- Overriding the outcome of a run.

-- :name active_attempts (id, tenant, limit)
-- The pending and running attempts of a job at one moment. Running attempts are found along the
-- links of the job's runs, up to 10,000 runs back. Long-running attempts may be behind runs that
-- were pruned, so they are read from long_attempt.
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
), linked_run AS (
    SELECT job_no, head_at AS at, head_sequence AS sequence, 0 AS depth,
           live - (SELECT count(*) FROM waiting) AS running
      FROM j WHERE head_at IS NOT NULL
     UNION ALL
    SELECT c.job_no, p.prev_at, p.prev_sequence, c.depth + 1, c.running - p.running
      FROM linked_run c
     CROSS JOIN LATERAL (SELECT max(prev_at) AS prev_at, max(prev_sequence) AS prev_sequence,
                                count(*) FILTER (WHERE status = {attempt.running}) AS running
                           FROM (SELECT prev_at, prev_sequence, status FROM attempt r
                                  WHERE r.scheduled_at = c.at AND r.job_no = c.job_no
                                    AND r.sequence = c.sequence
                                  UNION ALL
                                 SELECT prev_at, prev_sequence, {attempt.pending} FROM ready q
                                  WHERE q.scheduled_at = c.at AND q.job_no = c.job_no
                                    AND q.sequence = c.sequence) AS a) AS p
     WHERE p.prev_at IS NOT NULL AND c.running > p.running AND c.depth < 10000
), found AS MATERIALIZED (
    SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.priority, r.fence, r.started_at
      FROM linked_run c JOIN attempt r ON r.scheduled_at = c.at AND r.job_no = c.job_no
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
-- Records a pending attempt as running; the same transaction then records its outcome. A requeued
-- attempt already has a row, which keeps its node.
INSERT INTO attempt AS r (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence,
                          crashes,
                      node_no, prev_at, prev_sequence)
VALUES (:scheduled_at, :job_no, :sequence, :attempt, :tenant, {attempt.running}, :fence, :crashes,
        0,  :prev_at, :prev_sequence)
    ON CONFLICT (scheduled_at, job_no, sequence, attempt) DO UPDATE
   SET status = {attempt.running}, fence = excluded.fence, node_no = coalesce(r.node_no, 0)
RETURNING node_no;

-- :name override_changed
INSERT INTO changed_job (shard, job_no)
SELECT shard, job_no FROM job_state WHERE job_no = $1
    {on_conflict_reload_again};

-- :name override_job
SELECT id FROM job WHERE job_no = $1;

-- :name override_link (job_no, head_at, head_sequence)
-- A triggered run becomes the newest run of its job when it is fired, but this run is never fired.
WITH before AS MATERIALIZED (
    SELECT head_at, head_sequence FROM job_state WHERE job_no = :job_no FOR NO KEY UPDATE
), linked AS (
    UPDATE job_state SET head_at = :head_at, head_sequence = :head_sequence WHERE job_no = :job_no
)
SELECT head_at, head_sequence FROM before;

-- :name override_unowned (scheduled_at, job_no, sequence, attempt)
UPDATE attempt SET node_no = NULL
 WHERE scheduled_at = :scheduled_at AND job_no = :job_no AND sequence = :sequence
   AND attempt = :attempt AND node_no = 0;

-- :name override_node (scheduled_at, job_no, sequence, attempt, tenant, fence)
-- The attempt is locked before the job's state, which is the order that finishing uses.
SELECT node_no, cancel_requested FROM attempt
 WHERE scheduled_at = :scheduled_at AND job_no = :job_no AND sequence = :sequence
   AND attempt = :attempt AND tenant_no = :tenant
   AND fence = :fence AND status = {attempt.running}
   FOR NO KEY UPDATE;

-- :name override_running (scheduled_at, job_no, sequence, attempt, tenant, fence)
-- The higher fence prevents the worker from reporting a result.
UPDATE attempt SET fence = fence + 1
 WHERE scheduled_at = :scheduled_at AND job_no = :job_no AND sequence = :sequence
   AND attempt = :attempt AND tenant_no = :tenant
   AND fence = :fence AND status = {attempt.running}
RETURNING node_no;
