-- The lock waits for what the node is committing: after this the search for its attempts finds all.
WITH victim AS MATERIALIZED (
    SELECT node_no, state, steal_start_at FROM node WHERE node_no = $2 FOR UPDATE
), stolen AS (
    UPDATE node n SET state = 2
      FROM victim v, (SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now) AS clock
     WHERE n.node_no = v.node_no AND v.state IN (0, 1) AND v.steal_start_at = $3
       AND now - $3 >= $4::int8
 RETURNING n.node_no
)
SELECT EXISTS (SELECT FROM stolen) OR EXISTS (SELECT FROM victim WHERE state = 2);
