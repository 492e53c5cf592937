-- Nodes: joining the cluster, heartbeats, and taking over the attempts of dead nodes.

-- :name begin_steal
UPDATE node SET steal_start_at = ?2
WHERE node_no = ?1 AND state IN ({nodes.in_cluster}) AND steal_start_at IS NULL AND last_ping_at <= ?3

-- :name begin_steal_check
SELECT 1 FROM node
WHERE node_no = ?1 AND state IN ({nodes.in_cluster}) AND steal_start_at IS NOT NULL

-- :name drain
UPDATE node SET state = {node.draining} WHERE node_no = ?1 AND state = {node.live}

-- :name join_mark_dead
-- Includes dead nodes whose attempts were not taken over yet.
UPDATE node SET state = {node.dead} WHERE identity = ?1 AND state <> {node.gone} RETURNING node_no

-- :name join_node (identity, name, roles, joined_at, pools)
INSERT INTO node (identity, name, roles, joined_at, last_ping_at, low_watermark, pools)
VALUES (:identity, :name, :roles, :joined_at, :joined_at, :joined_at, :pools)

-- :name members
SELECT node_no, name, roles, state, joined_at, last_ping_at, steal_start_at, pools FROM node
WHERE state <> {node.gone} ORDER BY node_no

-- :name node_state
SELECT state FROM node WHERE node_no = ?1

-- :name ping_delete_long_attempts
DELETE FROM long_attempt WHERE node_no = ?1

-- :name ping_long_attempts (
--   node_no, scheduled_at, job_no, sequence, attempt, fence, started_at, last_ping_at)
INSERT INTO long_attempt (node_no, scheduled_at, job_no, sequence, attempt, fence, started_at,
                          last_ping_at)
VALUES (:node_no, :scheduled_at, :job_no, :sequence, :attempt, :fence, :started_at, :last_ping_at)
ON CONFLICT DO NOTHING

-- :name ping_node
UPDATE node SET last_ping_at = ?2, steal_start_at = NULL, low_watermark = coalesce(?3, low_watermark)
WHERE node_no = ?1

-- :name retire
UPDATE node SET state = {node.gone}, steal_start_at = NULL WHERE node_no = ?1

-- :name retire_delete_cancellations
DELETE FROM cancellation WHERE node_no = ?1

-- :name retire_delete_messages
DELETE FROM node_message WHERE node_no = ?1

-- :name steal_node
UPDATE node SET state = {node.dead}
WHERE node_no = ?1 AND state IN ({nodes.in_cluster}) AND steal_start_at = ?2 AND steal_start_at <= ?3
