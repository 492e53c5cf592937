-- written even if it is there: whoever is just telling it read the job before this
INSERT INTO changed_job (shard, job_no)
SELECT shard, job_no FROM job_state WHERE job_no = $1
    ON CONFLICT (shard, job_no) DO UPDATE SET job_no = excluded.job_no;
