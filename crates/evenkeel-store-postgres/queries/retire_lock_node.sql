SELECT node_no FROM node WHERE node_no = $1 FOR UPDATE;
