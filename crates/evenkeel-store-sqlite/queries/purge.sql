-- Deleting the history of deleted jobs.

-- :name purge_dead
DELETE FROM dead_letter
WHERE rowid IN (SELECT rowid FROM dead_letter WHERE job_no = ?1 LIMIT ?2)

-- :name purge_find
SELECT j.job_no, s.head_at, s.head_sequence, s.succeeded_at, s.failed_at
FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.id = ?2 AND j.tenant_no = ?1 AND j.state = {job.deleted}

-- :name purge_kept
-- The attempts that retention kept although the links to them may be deleted.
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt FROM attempt r
WHERE r.job_no = ?1 AND r.scheduled_at IN (?2, ?3)
  AND NOT EXISTS (SELECT 1 FROM attempt l
                  WHERE l.scheduled_at = r.scheduled_at AND l.job_no = r.job_no
                    AND l.sequence = r.sequence AND l.status IN ({attempts.unfinished}))

-- :name purge_relink (job_no, scheduled_at, sequence, prev_at, prev_sequence)
UPDATE attempt SET prev_at = :prev_at, prev_sequence = :prev_sequence
WHERE scheduled_at = :scheduled_at AND job_no = :job_no AND sequence = :sequence AND attempt = 0
