SELECT node_no, name, roles, state, joined_at, last_ping_at, steal_start_at, pools
  FROM node WHERE state <> 3 ORDER BY node_no;
