-- Deleting the history of deleted jobs.

-- :name purge_dead
DELETE FROM dead_letter
WHERE rowid IN (SELECT rowid FROM dead_letter WHERE job_no = ?1 LIMIT ?2)

-- :name purge_find
SELECT j.job_no, s.head_at, s.head_sequence, s.succeeded_at, s.failed_at
FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.id = ?2 AND j.tenant_no = ?1 AND j.state = 3

-- :name purge_head
UPDATE job_state SET head_at = ?2, head_sequence = ?3 WHERE job_no = ?1

-- :name purge_kept
-- What retention keeps of the past may be cut off from the chains before it.
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt FROM attempt r
WHERE r.job_no = ?1 AND r.scheduled_at IN (?2, ?3)
  AND NOT EXISTS (SELECT 1 FROM attempt l
                  WHERE l.scheduled_at = r.scheduled_at AND l.job_no = r.job_no
                    AND l.sequence = r.sequence AND l.status IN (0, 1))

-- :name purge_relink
UPDATE attempt SET prev_at = ?4, prev_sequence = ?5
WHERE scheduled_at = ?2 AND job_no = ?1 AND sequence = ?3 AND attempt = 0
