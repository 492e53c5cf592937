-- A note stays as long as the job stands so.
UPDATE job SET note = CASE WHEN standing = ?2 THEN note ELSE ?4 END, standing = ?2, updated_at = ?3
WHERE job_no = ?1
