INSERT INTO rebalance (id, tenant_no, state, undoes, undone_by, created_by, created_at, touched_at,
                       ended_at, parts, parts_done, planned, moved, changed, skipped, summary)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16);
