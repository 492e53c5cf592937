INSERT INTO changed_job (shard, job_no)
SELECT s.shard, s.job_no FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.job_no = ?1 AND j.standing < 2
ON CONFLICT DO NOTHING
