-- Reading attempts and lists of attempts.

-- :fragment short_attempt_columns
r.scheduled_at, r.job_no, r.sequence, r.attempt, j.id AS job_id, r.status, r.fence, r.crashes,
       r.node_no, n.name AS node_name, r.number, r.started_at, r.finished_at, r.items_crawled,
       r.items_indexed, r.cpu_us, r.memory_kb, r.skipped_to, r.skipped_count, r.skip_reason

-- :fragment attempt_columns
-- read_attempt reads these columns by name.
{short_attempt_columns}, r.error

-- :fragment listed_attempt_columns
{attempt_columns}, left(r.output, 65536) AS output

-- :fragment stored_attempt_columns
scheduled_at, job_no, sequence, attempt, status, fence, crashes, node_no, number, started_at,
               finished_at, error, output, items_crawled, items_indexed, cpu_us, memory_kb,
               skipped_to, skipped_count, skip_reason

-- :fragment no_results
-- An attempt that was not claimed has none of the columns from `node_no` on.
NULL::int4, NULL::int8, NULL::int8, NULL::int8, NULL::text, NULL::text, NULL::int8, NULL::int8,
               NULL::int8, NULL::int8, NULL::int8, NULL::int8, NULL::int2

-- :fragment queued_attempt_columns
q.scheduled_at, q.job_no, q.sequence, q.attempt, {attempt.pending}::int2, q.fence, q.crashes,
               {no_results}

-- :name attempts_of_runs (tenant, job_no, scheduled_at, sequence, newest)
-- Of a run with many attempts, reads the first attempt and the newest ones.
SELECT {short_attempt_columns}, left(r.error, 4096) AS error, NULL::text AS output, r.due
  FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[])
       AS d(job_no, scheduled_at, sequence)
 CROSS JOIN LATERAL (
        SELECT {stored_attempt_columns}, NULL::int8 AS due
          FROM attempt
         WHERE scheduled_at = d.scheduled_at AND job_no = d.job_no AND sequence = d.sequence
           AND (attempt = 0
                OR attempt IN (SELECT e.attempt FROM attempt e
                                WHERE e.scheduled_at = d.scheduled_at AND e.job_no = d.job_no
                                  AND e.sequence = d.sequence
                                ORDER BY e.attempt DESC LIMIT :newest))
         UNION ALL
        SELECT {queued_attempt_columns}, NULL::int8
          FROM ready q
         WHERE scheduled_at = d.scheduled_at AND job_no = d.job_no AND sequence = d.sequence
           AND NOT EXISTS (SELECT FROM attempt e
                            WHERE e.scheduled_at = d.scheduled_at AND e.job_no = d.job_no
                              AND e.sequence = d.sequence AND e.attempt = q.attempt)
         UNION ALL
        SELECT scheduled_at, job_no, sequence, attempt, {attempt.pending}::int2, 0::int4, 0::int2,
               {no_results}, due
          FROM delayed_attempt
         WHERE scheduled_at = d.scheduled_at AND job_no = d.job_no AND sequence = d.sequence) AS r
  JOIN job j ON j.job_no = r.job_no LEFT JOIN node n ON n.node_no = r.node_no
 WHERE j.tenant_no = :tenant
 ORDER BY r.scheduled_at, r.job_no, r.sequence, r.attempt;

-- :name get_attempt (tenant, scheduled_at, job_no, sequence, attempt)
-- Finds the attempt or, for attempt 0, the latest attempt of its run, in the history or the queue,
-- and otherwise in the delayed attempts.
SELECT {attempt_columns}, r.output, t.progress, t.log
  FROM (SELECT {stored_attempt_columns}, false AS waits
          FROM attempt
         WHERE scheduled_at = :scheduled_at AND job_no = :job_no AND sequence = :sequence
           AND (attempt = :attempt OR :attempt = 0)
         UNION ALL
        SELECT {queued_attempt_columns}, false
          FROM ready q
         WHERE scheduled_at = :scheduled_at AND job_no = :job_no AND sequence = :sequence
           AND (attempt = :attempt OR :attempt = 0)
           AND NOT EXISTS (SELECT FROM attempt e
                            WHERE e.scheduled_at = :scheduled_at AND e.job_no = :job_no
                              AND e.sequence = :sequence
                              AND e.attempt = q.attempt)
         UNION ALL
        SELECT scheduled_at, job_no, sequence, attempt, {attempt.pending}::int2, 0::int4, 0::int2,
               {no_results}, true
          FROM delayed_attempt
         WHERE scheduled_at = :scheduled_at AND job_no = :job_no AND sequence = :sequence
           AND (attempt = :attempt OR :attempt = 0)) AS r
  JOIN job j USING (job_no) LEFT JOIN node n USING (node_no)
  LEFT JOIN note t ON t.scheduled_at = r.scheduled_at AND t.job_no = r.job_no
  AND t.sequence = r.sequence
                  AND t.attempt = r.attempt AND t.fence = r.fence AND r.status = {attempt.running}
 WHERE j.tenant_no = :tenant
 ORDER BY r.waits, r.attempt DESC LIMIT 1;

-- :name list_attempts (tenant, before_at, before_job_no, before_sequence, before_attempt, limit)
-- All attempts of a tenant before a key, newest first, from the history and the queue.
SELECT {listed_attempt_columns}
  FROM ((SELECT {stored_attempt_columns}
           FROM attempt
          WHERE tenant_no = :tenant
            AND (scheduled_at, job_no, sequence, attempt) <
                (:before_at::int8, :before_job_no::int8,
                 :before_sequence::int4, :before_attempt::int2)
          ORDER BY scheduled_at DESC, job_no DESC, sequence DESC, attempt DESC LIMIT :limit)
        UNION ALL
        (SELECT {queued_attempt_columns}
           FROM ready q
          WHERE tenant_no = :tenant
            AND (scheduled_at, job_no, sequence, attempt) <
                (:before_at::int8, :before_job_no::int8,
                 :before_sequence::int4, :before_attempt::int2)
            AND NOT EXISTS (SELECT FROM attempt e
                             WHERE e.scheduled_at = q.scheduled_at AND e.job_no = q.job_no
                               AND e.sequence = q.sequence AND e.attempt = q.attempt)
          ORDER BY scheduled_at DESC, job_no DESC, sequence DESC, attempt DESC LIMIT :limit)) AS r
  JOIN job j USING (job_no) LEFT JOIN node n USING (node_no)
 ORDER BY r.scheduled_at DESC, r.job_no DESC, r.sequence DESC, r.attempt DESC LIMIT :limit;

-- :name list_attempts_count (tenant, limit)
-- Counts at most `limit` attempts of a tenant in the history, and at most `limit` in the queue.
SELECT (SELECT count(*) FROM (SELECT FROM attempt WHERE tenant_no = :tenant LIMIT :limit) AS r)
     + (SELECT count(*) FROM (SELECT FROM ready q
                               WHERE tenant_no = :tenant
                                 AND NOT EXISTS (SELECT FROM attempt e
                                                  WHERE e.scheduled_at = q.scheduled_at
                                                    AND e.job_no = q.job_no
                                                    AND e.sequence = q.sequence
                                                    AND e.attempt = q.attempt)
                               LIMIT :limit) AS q);

-- :name list_attempts_job (id, tenant)
-- Finds a job of the tenant, deleted or not, and its number of attempts so far.
SELECT j.job_no, s.executions FROM job j JOIN job_state s USING (job_no)
 WHERE j.id = :id AND j.tenant_no = :tenant;

-- :name list_attempts_kept (job_no, before)
-- A job's newest successful and newest failed attempt, which pruning keeps, if they are older than
-- all linked runs.
SELECT {listed_attempt_columns}
  FROM job_state s
  JOIN attempt r ON r.job_no = s.job_no
            AND (r.scheduled_at = s.succeeded_at AND r.status IN ({attempts.succeeded})
                 OR r.scheduled_at = s.failed_at AND r.status IN ({attempts.failed}))
  JOIN job j ON j.job_no = s.job_no LEFT JOIN node n USING (node_no)
 WHERE s.job_no = :job_no AND r.scheduled_at IN (s.succeeded_at, s.failed_at)
   AND r.scheduled_at < :before
 ORDER BY r.scheduled_at DESC, r.sequence DESC, r.attempt DESC;

-- :name list_attempts_of_job (job_no, from_at, from_sequence, before_attempt, limit)
-- The attempts of one job, along the links from each run to the previous run, starting at the
-- newest run or at the given run. If the first attempt of a run was never claimed, its link is in
-- the queue.
WITH RECURSIVE linked_run AS (
    SELECT coalesce(:from_at, head_at) AS at, coalesce(:from_sequence, head_sequence) AS sequence,
           0 AS depth
      FROM job_state WHERE job_no = :job_no AND coalesce(:from_at, head_at) IS NOT NULL
     UNION ALL
    SELECT p.prev_at, p.prev_sequence, c.depth + 1
      FROM linked_run c
     CROSS JOIN LATERAL (SELECT prev_at, prev_sequence FROM attempt
                          WHERE scheduled_at = c.at AND job_no = :job_no AND sequence = c.sequence
                            AND attempt = 0
                          UNION
                         SELECT prev_at, prev_sequence FROM ready
                          WHERE scheduled_at = c.at AND job_no = :job_no AND sequence = c.sequence
                            AND attempt = 0) AS p
     WHERE p.prev_at IS NOT NULL AND c.depth < :limit::int8
)
SELECT {listed_attempt_columns}
  FROM linked_run c
 CROSS JOIN LATERAL (
        SELECT {stored_attempt_columns}
          FROM attempt WHERE scheduled_at = c.at AND job_no = :job_no AND sequence = c.sequence
         UNION ALL
        SELECT {queued_attempt_columns}
          FROM ready q
         WHERE scheduled_at = c.at AND job_no = :job_no AND sequence = c.sequence
           AND NOT EXISTS (SELECT FROM attempt e
                            WHERE e.scheduled_at = c.at AND e.job_no = :job_no
                              AND e.sequence = c.sequence AND e.attempt = q.attempt)) AS r
  JOIN job j USING (job_no) LEFT JOIN node n USING (node_no)
 WHERE c.depth > 0 OR r.attempt < :before_attempt
 ORDER BY c.depth, r.attempt DESC LIMIT :limit;

-- :name recent_runs (tenant, jobs, each)
-- The newest runs of many jobs, along the links from each run to the previous run. The link is in
-- the first attempt of a run or, if that attempt was never claimed, in the queue.
WITH RECURSIVE linked_run AS (
    SELECT d.place, j.id, j.job_no, 1 AS depth, s.head_at AS at, s.head_sequence AS sequence
      FROM unnest(:jobs::uuid[]) WITH ORDINALITY AS d(id, place)
      JOIN job j USING (id) JOIN job_state s USING (job_no)
     WHERE j.tenant_no = :tenant AND j.state <> {job.deleted} AND s.head_at IS NOT NULL
       AND :each::int4 > 0
     UNION ALL
    SELECT c.place, c.id, c.job_no, c.depth + 1, p.prev_at, p.prev_sequence
      FROM linked_run c
     CROSS JOIN LATERAL (SELECT prev_at, prev_sequence FROM attempt
                          WHERE scheduled_at = c.at AND job_no = c.job_no
                            AND sequence = c.sequence AND attempt = 0
                          UNION
                         SELECT prev_at, prev_sequence FROM ready
                          WHERE scheduled_at = c.at AND job_no = c.job_no
                            AND sequence = c.sequence AND attempt = 0) AS p
     WHERE p.prev_at IS NOT NULL AND c.depth < :each
)
SELECT c.id AS job_id, c.at AS scheduled_at, c.job_no, c.sequence, 0::int2 AS attempt,
       (SELECT started_at FROM attempt
         WHERE scheduled_at = c.at AND job_no = c.job_no AND sequence = c.sequence
           AND attempt = 0) AS started_at,
       r.finished_at, r.status
  FROM linked_run c
 CROSS JOIN LATERAL (
        (SELECT attempt, status, finished_at FROM attempt
          WHERE scheduled_at = c.at AND job_no = c.job_no AND sequence = c.sequence
          ORDER BY attempt DESC LIMIT 1)
         UNION ALL
        SELECT attempt, {attempt.pending}::int2, NULL FROM ready
         WHERE scheduled_at = c.at AND job_no = c.job_no AND sequence = c.sequence
         UNION ALL
        SELECT attempt, {attempt.pending}::int2, NULL FROM delayed_attempt
         WHERE scheduled_at = c.at AND job_no = c.job_no AND sequence = c.sequence
         ORDER BY attempt DESC LIMIT 1) AS r
 ORDER BY c.place, c.depth;
