INSERT INTO rebalance_part (rebalance_no, part, moves) VALUES (?1, ?2, ?3)
