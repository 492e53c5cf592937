INSERT INTO job_state (job_no, tenant_no, shard, slot, placed_at, next_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
