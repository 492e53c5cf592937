-- Of plans made before ?1 that nobody acted on, and of rebalances planned before ?2. Those that go on
-- and were not touched for so long go on only in name.
DELETE FROM rebalance_part WHERE rowid IN
    (SELECT p.rowid
     FROM (SELECT rebalance_no FROM rebalance
           WHERE created_at < ?1 AND state <> 1 AND (state = 0 OR created_at < ?2)
           UNION ALL
           SELECT rebalance_no FROM rebalance
           WHERE created_at < ?2 AND state = 1 AND touched_at < ?2) AS r
     JOIN rebalance_part p ON p.rebalance_no = r.rebalance_no
     LIMIT ?3)
