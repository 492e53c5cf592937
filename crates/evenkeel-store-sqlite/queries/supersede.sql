-- Replacing an active run by a newer time of its job.

-- :name supersede_find
-- Returns a row only if the job has not changed since the scheduler decided; a deleted job has no next
-- time.
SELECT 1 FROM job_state WHERE job_no = ?1 AND generation = ?2 AND next_at = ?3
