-- Replacing an active run of a job by a newer run.

-- :name supersede_find
-- Returns a row only if the job has not changed since the scheduler decided; a deleted job has no
-- next run time.
SELECT 1 FROM job_state WHERE job_no = ?1 AND generation = ?2 AND next_at = ?3
