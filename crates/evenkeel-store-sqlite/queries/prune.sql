-- Pruning history.

-- :name prune_delete
DELETE FROM attempt
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4 AND status NOT IN (0, 1)

-- :name prune_find
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt,
       r.status NOT IN (0, 1)
           AND (coalesce(r.number, 0) <= s.executions - ?6
                OR coalesce(r.finished_at, r.scheduled_at) < ?7)
           AND NOT (r.status IN (2, 7) AND r.scheduled_at IS s.succeeded_at)
           AND NOT (r.status IN (3, 5) AND r.scheduled_at IS s.failed_at
                    -- Of a chain's failures only the last is the newest.
                    AND NOT EXISTS (SELECT 1 FROM attempt l
                                    WHERE l.scheduled_at = r.scheduled_at AND l.job_no = r.job_no
                                      AND l.sequence = r.sequence AND l.attempt > r.attempt
                                      AND l.status IN (3, 5))) AS forget,
       -- An ended attempt needs no note, a run that is over no checkpoint.
       r.status NOT IN (0, 1)
           AND EXISTS (SELECT 1 FROM note n
                       WHERE n.scheduled_at = r.scheduled_at AND n.job_no = r.job_no
                         AND n.sequence = r.sequence AND n.attempt = r.attempt) AS forget_note,
       EXISTS (SELECT 1 FROM checkpoint c
               WHERE c.scheduled_at = r.scheduled_at AND c.job_no = r.job_no
                 AND c.sequence = r.sequence)
           AND NOT EXISTS (SELECT 1 FROM attempt l
                           WHERE l.scheduled_at = r.scheduled_at AND l.job_no = r.job_no
                             AND l.sequence = r.sequence AND l.status IN (0, 1))
           AND NOT EXISTS (SELECT 1 FROM ready q
                           WHERE q.scheduled_at = r.scheduled_at AND q.job_no = r.job_no
                             AND q.sequence = r.sequence)
           AND NOT EXISTS (SELECT 1 FROM delayed_attempt w
                           WHERE w.scheduled_at = r.scheduled_at AND w.job_no = r.job_no
                             AND w.sequence = r.sequence) AS forget_checkpoint
FROM attempt r CROSS JOIN job_state s ON s.job_no = r.job_no
WHERE (r.scheduled_at, r.job_no, r.sequence, r.attempt) > (?1, ?2, ?3, ?4)
ORDER BY r.scheduled_at, r.job_no, r.sequence, r.attempt LIMIT ?5
