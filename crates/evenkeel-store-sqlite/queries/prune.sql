-- Pruning history.

-- :name prune_delete (scheduled_at, job_no, sequence, attempt)
DELETE FROM attempt
WHERE {this_attempt} AND status NOT IN ({attempts.unfinished})

-- :name prune_find (scheduled_at, job_no, sequence, attempt, limit, keep_per_job, keep_since)
-- The next attempts, and which rows can be deleted: the attempt, its note (a finished attempt needs
-- none), and the checkpoint of its run (a finished run needs none). The newest success and the
-- newest failure of a job are kept; if a run failed several times, its last failure is the newest.
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt,
       r.status NOT IN ({attempts.unfinished})
           AND (coalesce(r.number, 0) <= s.executions - :keep_per_job
                OR coalesce(r.finished_at, r.scheduled_at) < :keep_since)
           AND NOT (r.status IN ({attempts.succeeded}) AND r.scheduled_at IS s.succeeded_at)
           AND NOT (r.status IN ({attempts.failed}) AND r.scheduled_at IS s.failed_at
                    AND NOT EXISTS (SELECT 1 FROM attempt l
                                    WHERE l.scheduled_at = r.scheduled_at AND l.job_no = r.job_no
                                      AND l.sequence = r.sequence AND l.attempt > r.attempt
                                      AND l.status IN ({attempts.failed}))) AS prune_attempt,
       r.status NOT IN ({attempts.unfinished})
           AND EXISTS (SELECT 1 FROM note n
                       WHERE n.scheduled_at = r.scheduled_at AND n.job_no = r.job_no
                         AND n.sequence = r.sequence AND n.attempt = r.attempt) AS prune_note,
       EXISTS (SELECT 1 FROM checkpoint c
               WHERE c.scheduled_at = r.scheduled_at AND c.job_no = r.job_no
                 AND c.sequence = r.sequence)
           AND NOT EXISTS (SELECT 1 FROM attempt l
                           WHERE l.scheduled_at = r.scheduled_at AND l.job_no = r.job_no
                             AND l.sequence = r.sequence AND l.status IN ({attempts.unfinished}))
           AND NOT EXISTS (SELECT 1 FROM ready q
                           WHERE q.scheduled_at = r.scheduled_at AND q.job_no = r.job_no
                             AND q.sequence = r.sequence)
           AND NOT EXISTS (SELECT 1 FROM delayed_attempt w
                           WHERE w.scheduled_at = r.scheduled_at AND w.job_no = r.job_no
                             AND w.sequence = r.sequence) AS prune_checkpoint
FROM attempt r CROSS JOIN job_state s ON s.job_no = r.job_no
WHERE (r.scheduled_at, r.job_no, r.sequence, r.attempt) > (:scheduled_at, :job_no, :sequence, :attempt)
ORDER BY r.scheduled_at, r.job_no, r.sequence, r.attempt LIMIT :limit
