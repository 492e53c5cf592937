WITH kept AS (
    UPDATE rebalance_part SET made = $3 WHERE rebalance = $1 AND part = $2
)
UPDATE rebalance
   SET parts_done = parts_done + 1, moved = moved + $4, changed = changed + $5, touched_at = $6
 WHERE id = $1;
