DELETE FROM tally_running WHERE node_no = $1;
