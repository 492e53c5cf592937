-- Nodes: joining, heartbeats, and taking over from dead nodes.

-- :name begin_steal
UPDATE node
   SET steal_start_at = coalesce(steal_start_at, now)
  FROM (SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now) AS clock
 WHERE node_no = $2 AND state IN (0, 1)
   AND (steal_start_at IS NOT NULL OR now - last_ping_at >= $3);

-- :name drain
UPDATE node SET state = 1 WHERE node_no = $1 AND state = 0;

-- :name join_bury_former
-- Former incarnations of an identity are dead, once what they are committing is committed.
WITH former AS MATERIALIZED (
    SELECT node_no FROM node WHERE identity = $1 AND state <> 3 ORDER BY node_no FOR UPDATE
)
UPDATE node n SET state = 2 FROM former f WHERE n.node_no = f.node_no
RETURNING n.node_no;

-- :name join_lock
-- Two processes that claim one identity join one after the other.
SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0));

-- :name join_node
INSERT INTO node (identity, name, roles, pools, joined_at, last_ping_at, low_watermark)
SELECT $2, $3, $4, $5, now, now, now FROM (SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now) AS clock
RETURNING node_no, joined_at;

-- :name members
SELECT node_no, name, roles, state, joined_at, last_ping_at, steal_start_at, pools
  FROM node WHERE state <> 3 ORDER BY node_no;

-- :name ping_long_runs
-- Only what differs is written.
WITH d AS MATERIALIZED (
    SELECT * FROM unnest($3::int8[], $4::int8[], $5::int4[], $6::int2[], $7::int4[], $8::int8[])
                  AS d(job_no, scheduled_at, sequence, attempt, fence, started_at)
), gone AS (
    DELETE FROM long_attempt l
     WHERE node_no = $1
       AND NOT EXISTS (SELECT FROM d
                        WHERE d.scheduled_at = l.scheduled_at AND d.job_no = l.job_no
                          AND d.sequence = l.sequence AND d.attempt = l.attempt)
)
INSERT INTO long_attempt (node_no, scheduled_at, job_no, sequence, attempt, fence, started_at,
                      last_ping_at)
SELECT $1, scheduled_at, job_no, sequence, attempt, fence, started_at, $2 FROM d
    ON CONFLICT (node_no, scheduled_at, job_no, sequence, attempt) DO UPDATE
   SET fence = excluded.fence, started_at = excluded.started_at,
       last_ping_at = excluded.last_ping_at
 WHERE (long_attempt.fence, long_attempt.started_at)
       IS DISTINCT FROM (excluded.fence, excluded.started_at);

-- :name ping_node
UPDATE node
   SET last_ping_at = now, steal_start_at = NULL,
       low_watermark = CASE WHEN $3::int8 IS NULL THEN low_watermark
                          ELSE least($3, reached_back_to) END,
       reached_back_to = CASE WHEN $3::int8 IS NULL THEN reached_back_to END
  FROM (SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now) AS clock
 WHERE node_no = $2 AND state IN (0, 1)
RETURNING now;

-- :name retire
UPDATE node n SET state = 3
 WHERE n.node_no = $1
   AND NOT EXISTS (SELECT FROM attempt r
                    WHERE r.scheduled_at >= n.low_watermark AND r.node_no = $1 AND r.status = 1)
   AND NOT EXISTS (SELECT FROM long_attempt l JOIN attempt r USING (scheduled_at, job_no, sequence, attempt)
                    WHERE l.node_no = $1 AND r.node_no = $1 AND r.status = 1);

-- :name retire_delete_cancellations
DELETE FROM cancellation WHERE node_no = $1;

-- :name retire_prune_messages
DELETE FROM node_message WHERE node_no = $1;

-- :name retire_delete_long_runs
DELETE FROM long_attempt WHERE node_no = $1;

-- :name retire_delete_sums
DELETE FROM run_stats_running WHERE node_no = $1;

-- :name retire_lock_node
SELECT node_no FROM node WHERE node_no = $1 FOR UPDATE;

-- :name steal_node
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
