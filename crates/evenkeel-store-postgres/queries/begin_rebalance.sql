-- Others that went on and were left by whoever did that are stopped, so that one goes on at most.
UPDATE rebalance
   SET state = CASE WHEN id = $2 THEN 1 WHEN id = ANY ($3::uuid[]) THEN 3 ELSE state END,
       touched_at = CASE WHEN id = $2 THEN $5 ELSE touched_at END,
       ended_at = CASE WHEN id = $2 THEN NULL WHEN id = ANY ($3::uuid[]) THEN $5 ELSE ended_at END,
       undone_by = CASE WHEN id = $4 THEN $2 ELSE undone_by END
 WHERE tenant_no = $1 AND (id = $2 OR id = $4 OR id = ANY ($3::uuid[]));
