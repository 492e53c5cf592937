-- Dead ones whose work was not taken over yet are told again.
UPDATE node SET state = 2 WHERE identity = ?1 AND state <> 3 RETURNING node_no
