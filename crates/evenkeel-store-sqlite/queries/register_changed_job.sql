INSERT INTO changed_job (shard, job_no) VALUES (?1, ?2) ON CONFLICT DO NOTHING
