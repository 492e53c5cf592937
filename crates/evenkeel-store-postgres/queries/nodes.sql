-- Nodes: joining the cluster, heartbeats, and taking over the attempts of dead nodes.

-- :name begin_steal (now, node, silent_us)
UPDATE node
   SET steal_start_at = coalesce(steal_start_at, now)
  FROM (SELECT {clock} AS now) AS clock
 WHERE node_no = :node AND state IN ({nodes.in_cluster})
   AND (steal_start_at IS NOT NULL OR now - last_ping_at >= :silent_us);

-- :name drain
UPDATE node SET state = {node.draining} WHERE node_no = $1 AND state = {node.live};

-- :name join_mark_dead
-- Declares earlier processes with this identity dead. The lock waits for transactions that these
-- processes are committing.
WITH former AS MATERIALIZED (
    SELECT node_no FROM node WHERE identity = $1
    AND state <> {node.gone} ORDER BY node_no FOR UPDATE
)
UPDATE node n SET state = {node.dead} FROM former f WHERE n.node_no = f.node_no
RETURNING n.node_no;

-- :name join_lock
-- Processes with the same identity join the cluster one after the other.
SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0));

-- :name join_node (now, identity, name, roles, pools)
INSERT INTO node (identity, name, roles, pools, joined_at, last_ping_at, low_watermark)
SELECT :identity, :name, :roles, :pools, now, now, now FROM (SELECT {clock} AS now) AS clock
RETURNING node_no, joined_at;

-- :name members
SELECT node_no, name, roles, state, joined_at, last_ping_at, steal_start_at, pools
  FROM node WHERE state <> {node.gone} ORDER BY node_no;

-- :name ping_long_attempts (node, now, job_no, scheduled_at, sequence, attempt, fence, started_at)
-- Writes only the rows that differ.
WITH d AS MATERIALIZED (
    SELECT * FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[],
                         :attempt::int2[], :fence::int4[], :started_at::int8[])
                  AS d(job_no, scheduled_at, sequence, attempt, fence, started_at)
), deleted AS (
    DELETE FROM long_attempt l
     WHERE node_no = :node
       AND NOT EXISTS (SELECT FROM d
                        WHERE d.scheduled_at = l.scheduled_at AND d.job_no = l.job_no
                          AND d.sequence = l.sequence AND d.attempt = l.attempt)
)
INSERT INTO long_attempt (node_no, scheduled_at, job_no, sequence, attempt, fence, started_at,
                      last_ping_at)
SELECT :node, scheduled_at, job_no, sequence, attempt, fence, started_at, :now FROM d
    ON CONFLICT (node_no, scheduled_at, job_no, sequence, attempt) DO UPDATE
   SET fence = excluded.fence, started_at = excluded.started_at,
       last_ping_at = excluded.last_ping_at
 WHERE (long_attempt.fence, long_attempt.started_at)
       IS DISTINCT FROM (excluded.fence, excluded.started_at);

-- :name ping_node (now, node, low_watermark)
UPDATE node
   SET last_ping_at = now, steal_start_at = NULL,
       low_watermark = CASE WHEN :low_watermark::int8 IS NULL THEN low_watermark
                          ELSE least(:low_watermark, reached_back_to) END,
       reached_back_to = CASE WHEN :low_watermark::int8 IS NULL THEN reached_back_to END
  FROM (SELECT {clock} AS now) AS clock
 WHERE node_no = :node AND state IN ({nodes.in_cluster})
RETURNING now;

-- :name retire
UPDATE node n SET state = {node.gone}
 WHERE n.node_no = $1
   AND NOT EXISTS (SELECT FROM attempt r
                    WHERE r.scheduled_at >= n.low_watermark AND r.node_no = $1
                      AND r.status = {attempt.running})
   AND NOT EXISTS (SELECT FROM long_attempt l JOIN attempt r USING (scheduled_at, job_no, sequence, attempt)
                    WHERE l.node_no = $1 AND r.node_no = $1 AND r.status = {attempt.running});

-- :name retire_delete_cancellations
DELETE FROM cancellation WHERE node_no = $1;

-- :name retire_delete_messages
DELETE FROM node_message WHERE node_no = $1;

-- :name retire_delete_long_attempts
DELETE FROM long_attempt WHERE node_no = $1;

-- :name retire_delete_run_stats
DELETE FROM run_stats_running WHERE node_no = $1;

-- :name retire_lock_node
SELECT node_no FROM node WHERE node_no = $1 FOR UPDATE;

-- :name steal_node (now, node, steal_start_at, grace_us)
-- The lock waits for transactions that the node is committing, so that the search for its attempts
-- then finds all of them.
WITH victim AS MATERIALIZED (
    SELECT node_no, state, steal_start_at FROM node WHERE node_no = :node FOR UPDATE
), stolen AS (
    UPDATE node n SET state = {node.dead}
      FROM victim v, (SELECT {clock} AS now) AS clock
     WHERE n.node_no = v.node_no AND v.state IN ({nodes.in_cluster})
       AND v.steal_start_at = :steal_start_at
       AND now - :steal_start_at >= :grace_us::int8
 RETURNING n.node_no
)
SELECT EXISTS (SELECT FROM stolen) OR EXISTS (SELECT FROM victim WHERE state = {node.dead});
