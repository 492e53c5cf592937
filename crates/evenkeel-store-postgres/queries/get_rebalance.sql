SELECT id, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts, parts_done,
       planned, moved, changed, skipped, summary
  FROM rebalance WHERE id = $1 AND tenant_no = $2;
