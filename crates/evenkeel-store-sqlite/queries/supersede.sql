-- Replacing an active run by a newer time of its job.

-- :name supersede_find
-- Has a row if the job is still as it was decided on; a deleted job has no next time.
SELECT 1 FROM job_state WHERE job_no = ?1 AND generation = ?2 AND next_at = ?3
