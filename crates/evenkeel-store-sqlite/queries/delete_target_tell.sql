INSERT INTO changed_job (shard, job_no)
SELECT s.shard, s.job_no FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.tenant_no = ?1 AND j.target_no = ?2 AND s.slot IS NOT NULL
ON CONFLICT DO NOTHING
