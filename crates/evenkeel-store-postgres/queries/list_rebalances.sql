SELECT id, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts, parts_done,
       planned, moved, changed, skipped, summary
  FROM rebalance
 WHERE tenant_no = $1 AND state <> 0 AND (created_at, id) < ($2, $3)
 ORDER BY created_at DESC, id DESC LIMIT $4 OFFSET $5;
