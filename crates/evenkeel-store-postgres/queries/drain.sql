UPDATE node SET state = 1 WHERE node_no = $1 AND state = 0;
