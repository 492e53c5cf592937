DELETE FROM tally_running WHERE node_no = $1 AND tenant_no <> ALL ($2::int4[]);
