-- As in fire_claimed: nobody can declare the node dead before this transaction has ended.
SELECT node_no FROM node WHERE node_no = $1 AND state = 0 FOR KEY SHARE;
