INSERT INTO ready (pool, lane, priority, should_start_by, since, scheduled_at, job_no, sequence,
                   attempt, tenant_no, fence, crashes, prev_at, prev_sequence, limit_key,
                   open_from, open_until, forbidden_nodes, own_priority, rise,
                   limit_max)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
        ?19, ?20, ?21)
