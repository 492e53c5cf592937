UPDATE rebalance
SET parts_done = parts_done + 1, touched_at = ?2, moved = moved + ?3, changed = changed + ?4
WHERE rebalance_no = ?1
