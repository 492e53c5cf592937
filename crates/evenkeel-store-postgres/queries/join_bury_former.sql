-- Former incarnations of an identity are dead, once what they are committing is committed.
WITH former AS MATERIALIZED (
    SELECT node_no FROM node WHERE identity = $1 AND state <> 3 ORDER BY node_no FOR UPDATE
)
UPDATE node n SET state = 2 FROM former f WHERE n.node_no = f.node_no
RETURNING n.node_no;
