INSERT INTO job_state (job_no, tenant_no, shard, slot, placed_at, next_at, by_end)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
