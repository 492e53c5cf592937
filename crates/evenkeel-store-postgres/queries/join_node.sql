INSERT INTO node (identity, name, roles, pools, joined_at, last_ping_at, oldest_open)
SELECT $2, $3, $4, $5, now, now, now FROM (SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now) AS clock
RETURNING node_no, joined_at;
