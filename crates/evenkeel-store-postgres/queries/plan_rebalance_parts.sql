INSERT INTO rebalance_part (rebalance, part, moves)
SELECT $1, $2 + nth::int4 - 1, moves FROM unnest($3::bytea[]) WITH ORDINALITY AS d(moves, nth);
