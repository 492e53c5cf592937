DELETE FROM letter WHERE node_no = $1;
