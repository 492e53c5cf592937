-- The one that is wanted, and all that go on. Whoever moves a batch or stops one is waited for.
SELECT id, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts, parts_done,
       planned, moved, changed, skipped, summary
  FROM rebalance
 WHERE tenant_no = $1 AND (state = 1 OR id = $2)
 ORDER BY id FOR NO KEY UPDATE;
