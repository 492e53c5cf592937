-- Claiming attempts from the queue.

-- :fragment candidate_columns
-- Candidate::read reads these columns by position, so they must come first.
c.ctid::text, c.lane, c.priority, c.rise, c.should_start_by, c.since, c.scheduled_at,
       c.job_no, c.sequence, c.attempt, c.own_priority, c.tenant_no, c.fence, c.crashes, c.prev_at,
       c.prev_sequence, c.limit_key, c.limit_max

-- :fragment is_open
(open_from IS NULL OR open_from <= (SELECT now FROM clock))
                        AND (open_until IS NULL OR open_until > (SELECT now FROM clock))

-- :fragment is_allowed_node
(forbidden_nodes IS NULL OR NOT forbidden_nodes ? :node_name)

-- :name claim_aged (pools, lane, count, rise_max, now, node_name)
-- For each lane and pool, the attempts whose waiting time ranks them at least as high as the last
-- attempt found by priority. Usually there are none.
WITH clock AS MATERIALIZED (SELECT {clock} AS now)
SELECT {candidate_columns}
  FROM unnest(:lane::int2[], :count::int8[], :rise_max::int8[]) AS l(lane, count, rise_max)
 CROSS JOIN unnest(:pools::text[]) AS p(pool)
 CROSS JOIN LATERAL (SELECT ctid, * FROM ready
                      WHERE pool = p.pool AND lane = l.lane AND rise <= l.rise_max
                        AND {is_open} AND {is_allowed_node}
                      ORDER BY rise, should_start_by, since, job_no
                      LIMIT l.count FOR UPDATE SKIP LOCKED) AS c;

-- :name claim_front (pools, limit, now, node_name)
-- The first attempts of each lane and pool by priority and by waiting time, without locks. The
-- caller moves those whose limit is full to limit queues.
WITH clock AS MATERIALIZED (SELECT {clock} AS now)
SELECT {candidate_columns}
  FROM unnest(:pools::text[]) AS p(pool)
 CROSS JOIN unnest('{{lanes.all}}'::int2[]) AS l(lane)
 CROSS JOIN LATERAL (SELECT ctid, * FROM ready
                      WHERE pool = p.pool AND lane = l.lane
                        AND {is_open} AND {is_allowed_node}
                      ORDER BY priority DESC, should_start_by, since, job_no
                      LIMIT :limit) AS c
 UNION ALL
SELECT {candidate_columns}
  FROM unnest(:pools::text[]) AS p(pool)
 CROSS JOIN unnest('{{lanes.all}}'::int2[]) AS l(lane)
 CROSS JOIN LATERAL (SELECT ctid, * FROM ready
                      WHERE pool = p.pool AND lane = l.lane
                        AND {is_open} AND {is_allowed_node}
                      ORDER BY rise, should_start_by, since, job_no
                      LIMIT :limit) AS c;

-- :name claim_guaranteed (pools, lane, count, now, node_name)
-- The first attempts of each lane and pool by priority, up to the number that the lane is
-- guaranteed. Rows locked by other claims are skipped, and so are attempts that this node may not
-- claim now.
WITH clock AS MATERIALIZED (SELECT {clock} AS now)
SELECT {candidate_columns}
  FROM unnest(:lane::int2[], :count::int8[]) AS l(lane, count)
 CROSS JOIN unnest(:pools::text[]) AS p(pool)
 CROSS JOIN LATERAL (SELECT ctid, * FROM ready
                      WHERE pool = p.pool AND lane = l.lane
                        AND {is_open} AND {is_allowed_node}
                      ORDER BY priority DESC, should_start_by, since, job_no
                      LIMIT l.count FOR UPDATE SKIP LOCKED) AS c;

-- :name claim_is_ready (now, pools, node_name)
-- True if this node can claim any attempt. Nodes often look at a queue that is empty or has no
-- attempt that they may claim now.
WITH clock AS MATERIALIZED (SELECT {clock} AS now)
SELECT (SELECT now FROM clock),
       EXISTS (SELECT FROM ready
                WHERE pool = ANY (:pools::text[])
                  AND {is_open} AND {is_allowed_node});

-- :name claim_lock_node
-- Locks the node as the fragment alive_node does.
SELECT node_no FROM node WHERE node_no = $1 AND state = {node.live} FOR KEY SHARE;

-- :name claim_rest (pools, limit, now, node_name)
-- The first attempts of each pool by lane and priority. Attempts that this node may not claim now
-- are skipped.
WITH clock AS MATERIALIZED (SELECT {clock} AS now)
SELECT {candidate_columns}
  FROM unnest(:pools::text[]) AS p(pool)
 CROSS JOIN LATERAL (SELECT ctid, * FROM ready
                      WHERE pool = p.pool
                        AND {is_open} AND {is_allowed_node}
                      ORDER BY lane, priority DESC, should_start_by, since, job_no
                      LIMIT :limit FOR UPDATE SKIP LOCKED) AS c;

-- :name claim_start (
--   now, node, job_no, scheduled_at, sequence, attempt, tenant, fence, crashes, prev_at,
--   prev_sequence, priority
-- )
-- Starts the attempts that the claim has deleted from the queue. A requeued attempt already has a
-- row.
WITH clock AS MATERIALIZED (SELECT {clock} AS now), d AS MATERIALIZED (
    SELECT *, row_number() OVER (PARTITION BY job_no ORDER BY scheduled_at, sequence, attempt)
              AS nth
      FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[], :attempt::int2[],
                  :tenant::int4[], :fence::int4[],
                  :crashes::int2[], :prev_at::int8[], :prev_sequence::int4[], :priority::int2[])
           AS d(job_no, scheduled_at, sequence, attempt, tenant_no, fence, crashes, prev_at,
                prev_sequence, priority)
), locked AS MATERIALIZED (
    SELECT d.*, s.executions
      FROM (SELECT * FROM d ORDER BY job_no) AS d JOIN job_state s USING (job_no)
       FOR NO KEY UPDATE OF s
), counted AS (
    UPDATE job_state s SET executions = s.executions + l.n
      FROM (SELECT job_no, count(*) AS n FROM locked GROUP BY job_no ORDER BY job_no) AS l
     WHERE s.job_no = l.job_no
), started AS (
    INSERT INTO attempt AS r (scheduled_at, job_no, sequence, attempt, tenant_no, status, crashes,
                          fence, node_no, prev_at, prev_sequence, number, started_at,
                          priority)
    SELECT scheduled_at, job_no, sequence, attempt, tenant_no, {attempt.running}, crashes,
           fence + 1, :node, prev_at,
           prev_sequence, executions + nth, (SELECT now FROM clock), priority
      FROM locked
        ON CONFLICT (scheduled_at, job_no, sequence, attempt) DO UPDATE
       SET status = {attempt.running}, fence = excluded.fence, crashes = excluded.crashes,
       node_no = excluded.node_no,
           number = excluded.number, started_at = excluded.started_at,
           priority = excluded.priority
), reached AS (
    {lower_watermark}
      FROM (SELECT min(scheduled_at) AS earliest FROM d) AS d
     WHERE node_no = :node
)
SELECT (SELECT now FROM clock), d.scheduled_at, d.job_no, d.sequence, d.attempt, j.definition,
       -- a subquery instead of a join, because a plan made for an empty table might scan it for
       -- each row
       (SELECT c.data FROM checkpoint c
         WHERE c.scheduled_at = d.scheduled_at AND c.job_no = d.job_no
           AND c.sequence = d.sequence)
  FROM d JOIN job j USING (job_no);

-- :name claim_take
-- The rows are locked, so their ctid is still valid.
DELETE FROM ready WHERE ctid = ANY ($1::text[]::tid[]);
