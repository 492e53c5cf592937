DELETE FROM cancellation WHERE node_no = $1;
