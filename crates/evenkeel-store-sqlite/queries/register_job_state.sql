INSERT INTO job_state (job_no, tenant_no, shard, slot, placed_at, next_at, by_end,
                       rhythm, cost_us, cost_stated)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
