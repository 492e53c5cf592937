-- Pruning history.

-- :name prune (
--   after_at, after_job_no, after_sequence, after_attempt, limit, keep_per_job, keep_since
-- )
-- Scans the next rows in key order and deletes those that are older than the retention limits. A
-- job's newest successful and newest failed attempt are kept.
WITH seen AS MATERIALIZED (
    SELECT scheduled_at, job_no, sequence, attempt, status, number,
           finished_at
      FROM attempt
     WHERE (scheduled_at, job_no, sequence, attempt) > (:after_at::int8, :after_job_no::int8,
                                                        :after_sequence::int4, :after_attempt::int2)
     ORDER BY scheduled_at, job_no, sequence, attempt
     LIMIT :limit
), deleted AS (
    DELETE FROM attempt r
     USING seen n JOIN job_state s USING (job_no)
     WHERE r.scheduled_at = n.scheduled_at AND r.job_no = n.job_no AND r.sequence = n.sequence
       AND r.attempt = n.attempt AND r.status NOT IN ({attempts.unfinished})
       AND (n.number <= s.executions - :keep_per_job OR n.finished_at < :keep_since)
       AND NOT (n.status IN ({attempts.succeeded}) AND n.scheduled_at = s.succeeded_at
                AND NOT EXISTS (SELECT FROM attempt l
                                 WHERE l.scheduled_at = n.scheduled_at AND l.job_no = n.job_no
                                   AND (l.sequence, l.attempt) > (n.sequence, n.attempt)
                                   AND l.status IN ({attempts.succeeded})))
       AND NOT (n.status IN ({attempts.failed}) AND n.scheduled_at = s.failed_at
                AND NOT EXISTS (SELECT FROM attempt l
                                 WHERE l.scheduled_at = n.scheduled_at AND l.job_no = n.job_no
                                   AND (l.sequence, l.attempt) > (n.sequence, n.attempt)
                                   AND l.status IN ({attempts.failed})))
 RETURNING r.scheduled_at, r.job_no, r.sequence, r.attempt, r.prev_at, r.prev_sequence
), notes AS (
    -- a finished attempt needs no note (found as in finish_delete_notes)
    DELETE FROM note
     WHERE ctid = ANY (ARRAY(
               SELECT t.ctid FROM seen n
                CROSS JOIN LATERAL (
                      SELECT ctid FROM note t
                       WHERE t.scheduled_at = n.scheduled_at AND t.job_no = n.job_no
                         AND t.sequence = n.sequence AND t.attempt = n.attempt
                      OFFSET 0) AS t
                WHERE n.status NOT IN ({attempts.unfinished})))
), checkpoints AS (
    -- a finished run needs no checkpoint
    DELETE FROM checkpoint
     WHERE ctid = ANY (ARRAY(
               SELECT c.ctid FROM seen n
                CROSS JOIN LATERAL (
                      SELECT ctid FROM checkpoint c
                       WHERE c.scheduled_at = n.scheduled_at AND c.job_no = n.job_no
                         AND c.sequence = n.sequence
                         AND NOT EXISTS (SELECT FROM attempt l
                                          WHERE l.scheduled_at = n.scheduled_at
                                            AND l.job_no = n.job_no AND l.sequence = n.sequence
                                            AND l.status IN ({attempts.unfinished}))
                         AND NOT EXISTS (SELECT FROM ready q
                                          WHERE q.scheduled_at = n.scheduled_at
                                            AND q.job_no = n.job_no AND q.sequence = n.sequence)
                         AND NOT EXISTS (SELECT FROM delayed_attempt w
                                          WHERE w.scheduled_at = n.scheduled_at
                                            AND w.job_no = n.job_no AND w.sequence = n.sequence)
                      OFFSET 0) AS c))
), relinked_job AS (
    -- jobs with a row that is reachable only through a deleted row; the newest successful and the
    -- newest failed attempt are found without links
    SELECT DISTINCT g.job_no
      FROM deleted g JOIN job_state s USING (job_no)
      JOIN attempt p ON p.scheduled_at = g.prev_at AND p.job_no = g.job_no
                AND p.sequence = g.prev_sequence AND p.attempt = 0
     WHERE g.attempt = 0 AND p.scheduled_at IS DISTINCT FROM s.succeeded_at
       AND p.scheduled_at IS DISTINCT FROM s.failed_at
       AND NOT EXISTS (SELECT FROM deleted o
                        WHERE o.scheduled_at = g.prev_at AND o.job_no = g.job_no
                          AND o.sequence = g.prev_sequence AND o.attempt = 0)
), links AS (
    SELECT array_agg(job_no) AS link_job_nos, array_agg(scheduled_at) AS link_ats,
           array_agg(sequence) AS link_sequences, array_agg(prev_at) AS link_prev_ats,
           array_agg(prev_sequence) AS link_prev_sequences
      FROM deleted JOIN relinked_job USING (job_no) WHERE attempt = 0
)
SELECT (SELECT count(*) FROM seen) AS scanned, (SELECT count(*) FROM deleted) AS deleted,
       last.scheduled_at, last.job_no, last.sequence, last.attempt, links.*
  FROM links
  LEFT JOIN (SELECT * FROM seen
              ORDER BY scheduled_at DESC, job_no DESC, sequence DESC, attempt DESC
              LIMIT 1) AS last ON true;

-- :name prune_end_of_links
-- The last run of a job that the links lead to, and the link of that run.
WITH RECURSIVE linked_run AS (
    SELECT r.scheduled_at, r.sequence, r.prev_at, r.prev_sequence, 0 AS depth
      FROM job_state s
      JOIN attempt r ON r.scheduled_at = s.head_at AND r.job_no = s.job_no
                AND r.sequence = s.head_sequence AND r.attempt = 0
     WHERE s.job_no = $1
     UNION ALL
    SELECT r.scheduled_at, r.sequence, r.prev_at, r.prev_sequence, c.depth + 1
      FROM linked_run c
      JOIN attempt r ON r.scheduled_at = c.prev_at AND r.job_no = $1
      AND r.sequence = c.prev_sequence
                AND r.attempt = 0
)
SELECT scheduled_at, sequence, prev_at, prev_sequence FROM linked_run ORDER BY depth DESC LIMIT 1;

-- :name prune_relink (job_no, scheduled_at, sequence, prev_at, prev_sequence)
UPDATE attempt SET prev_at = :prev_at, prev_sequence = :prev_sequence
 WHERE scheduled_at = :scheduled_at AND job_no = :job_no AND sequence = :sequence AND attempt = 0;
