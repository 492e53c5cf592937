-- Nodes: joining, heartbeats, and taking over from dead nodes.

-- :name begin_steal
UPDATE node SET steal_start_at = ?2
WHERE node_no = ?1 AND state IN (0, 1) AND steal_start_at IS NULL AND last_ping_at <= ?3

-- :name begin_steal_check
SELECT 1 FROM node WHERE node_no = ?1 AND state IN (0, 1) AND steal_start_at IS NOT NULL

-- :name join_bury_former
-- Dead ones whose work was not taken over yet are told again.
UPDATE node SET state = 2 WHERE identity = ?1 AND state <> 3 RETURNING node_no

-- :name join_node
INSERT INTO node (identity, name, roles, joined_at, last_ping_at, low_watermark, pools)
VALUES (?1, ?2, ?3, ?4, ?4, ?4, ?5)

-- :name members
SELECT node_no, name, roles, state, joined_at, last_ping_at, steal_start_at, pools FROM node
WHERE state <> 3 ORDER BY node_no

-- :name ping_long_runs
INSERT INTO long_attempt (node_no, scheduled_at, job_no, sequence, attempt, fence, started_at,
                      last_ping_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING

-- :name ping_node
UPDATE node SET last_ping_at = ?2, steal_start_at = NULL, low_watermark = coalesce(?3, low_watermark)
WHERE node_no = ?1

-- :name steal_node
UPDATE node SET state = 2
WHERE node_no = ?1 AND state IN (0, 1) AND steal_start_at = ?2 AND steal_start_at <= ?3
