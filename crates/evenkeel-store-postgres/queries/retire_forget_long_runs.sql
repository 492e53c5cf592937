DELETE FROM long_run WHERE node_no = $1;
