INSERT INTO node (identity, name, roles, joined_at, last_ping_at, oldest_open, pools)
VALUES (?1, ?2, ?3, ?4, ?4, ?4, ?5)
