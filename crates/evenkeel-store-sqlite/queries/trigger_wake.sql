INSERT INTO wake (shard, due, scheduled_at, job_no, sequence, attempt, tenant_no, priority)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
