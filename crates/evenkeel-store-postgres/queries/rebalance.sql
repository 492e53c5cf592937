-- Plans to move jobs, and their moves.

-- :name begin_rebalance
-- Others that went on and were left by whoever did that are stopped, so that one goes on at most.
UPDATE rebalance
   SET state = CASE WHEN id = $2 THEN 1 WHEN id = ANY ($3::uuid[]) THEN 3 ELSE state END,
       touched_at = CASE WHEN id = $2 THEN $5 ELSE touched_at END,
       ended_at = CASE WHEN id = $2 THEN NULL WHEN id = ANY ($3::uuid[]) THEN $5 ELSE ended_at END,
       undone_by = CASE WHEN id = $4 THEN $2 ELSE undone_by END
 WHERE tenant_no = $1 AND (id = $2 OR id = $4 OR id = ANY ($3::uuid[]));

-- :name begin_rebalance_lock
-- Two that begin at once would not see each other. Not the tenant's row: an order waits for that with
-- jobs locked that a batch of moves may want.
SELECT coalesce($2::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
  FROM (SELECT pg_advisory_xact_lock(
            hashtextextended('evenkeel rebalance ' || current_schema() || ' ' || $1::int4, 0))
        OFFSET 0) AS locked;

-- :name begin_rebalance_find
-- The one that is wanted, and all that go on. Whoever moves a batch or stops one is waited for.
SELECT id, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts, parts_done,
       planned, moved, changed, skipped, summary
  FROM rebalance
 WHERE tenant_no = $1 AND (state = 1 OR id = $2)
 ORDER BY id FOR NO KEY UPDATE;

-- :name end_rebalance
UPDATE rebalance
   SET state = $3,
       ended_at = coalesce($4::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
 WHERE id = $1 AND tenant_no = $2 AND state = 1;

-- :name prune_balance_parts
-- Of plans made before $1 that nobody acted on, and of rebalances planned before $2.
DELETE FROM rebalance_part
 WHERE ctid = ANY (ARRAY(
       SELECT p.ctid
         FROM rebalance r JOIN rebalance_part p ON p.rebalance = r.id
        WHERE r.created_at < $1 AND (r.state = 0 OR (r.created_at < $2 AND (r.state <> 1 OR r.touched_at < $2)))
        LIMIT $3));

-- :name prune_balance_plans
DELETE FROM rebalance
 WHERE id = ANY (ARRAY(SELECT id FROM rebalance r WHERE created_at < $1 AND state = 0
                          AND NOT EXISTS (SELECT 1 FROM rebalance_part WHERE rebalance = r.id)
                        ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED));

-- :name prune_balance_rebalances
-- What goes on and was not touched for so long goes on only in name.
WITH gone AS (
    DELETE FROM rebalance
     WHERE id = ANY (ARRAY(SELECT id FROM rebalance WHERE created_at < $1
                              AND (state <> 1 OR touched_at < $1)
                            ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED))
 RETURNING id
), parts AS (
    DELETE FROM rebalance_part WHERE rebalance = ANY (ARRAY(SELECT id FROM gone))
)
SELECT count(*) FROM gone;

-- :name prune_balance_scores
DELETE FROM balance_score
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM balance_score WHERE hour < $1 LIMIT $2));

-- :name get_rebalance
SELECT id, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts, parts_done,
       planned, moved, changed, skipped, summary
  FROM rebalance WHERE id = $1 AND tenant_no = $2;

-- :name list_rebalances
SELECT id, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts, parts_done,
       planned, moved, changed, skipped, summary
  FROM rebalance
 WHERE tenant_no = $1 AND state <> 0 AND (created_at, id) < ($2, $3)
 ORDER BY created_at DESC, id DESC LIMIT $4 OFFSET $5;

-- :name list_rebalances_count
SELECT count(*) FROM rebalance WHERE tenant_no = $1 AND state <> 0;

-- :name move_jobs
-- Rows are locked in the order in which firing does, whatever the plan, and looked at as they are by
-- then. What firing was quicker with stays as it is, and what is due is left to it. A job that nobody
-- has counted yet is moved without its count.
WITH locked AS MATERIALIZED (
    SELECT s.job_no, s.shard, s.tenant_no, s.has_condition, s.counted, s.load_profile AS left_profile, s.cost_us,
           d.new_at, d.slot, d.load_profile
      FROM unnest($4::int8[], $5::int4[], $6::int8[], $7::int8[], $8::int4[], $9::int8[])
           AS d(job_no, generation, old_at, new_at, slot, load_profile)
      JOIN job_state s USING (job_no)
     WHERE s.tenant_no = $2 AND s.active AND s.generation = d.generation AND s.next_at = d.old_at
       AND (s.live = 0 OR $3) AND d.new_at > $1::int8 AND d.old_at > $1::int8
       AND d.new_at > coalesce(s.last_fired_at, d.new_at - 1)
     ORDER BY s.job_no FOR NO KEY UPDATE OF s
), moved AS (
    UPDATE job_state s
       SET generation = s.generation + 1, next_at = l.new_at, slot = l.slot, placed_at = $1,
           load_profile = CASE WHEN l.counted THEN l.load_profile ELSE s.load_profile END
      FROM locked l WHERE s.job_no = l.job_no
), touched AS (
    INSERT INTO job_condition (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM locked WHERE has_condition
        ON CONFLICT (job_no) DO UPDATE SET judge_at = 0, touched = excluded.touched
), told AS (
    -- written even if it is there: whoever is just telling it read the job before this
    INSERT INTO changed_job (shard, job_no)
    SELECT shard, job_no FROM locked WHERE slot <= $1 / 900000000 + 1
        ON CONFLICT (shard, job_no) DO UPDATE SET job_no = excluded.job_no
)
SELECT array_agg(job_no), array_agg(CASE WHEN counted THEN left_profile END), array_agg(load_profile),
       array_agg(cost_us)
  FROM locked;

-- :name move_jobs_done
WITH kept AS (
    UPDATE rebalance_part SET made = $3 WHERE rebalance = $1 AND part = $2
)
UPDATE rebalance
   SET parts_done = parts_done + 1, moved = moved + $4, changed = changed + $5, touched_at = $6
 WHERE id = $1;

-- :name move_jobs_lock
-- Whoever stops it waits until this batch is done, or this sees that it was stopped.
SELECT coalesce($4::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
  FROM rebalance
 WHERE id = $1 AND tenant_no = $2 AND state = 1 AND parts_done = $3 AND parts > $3
   FOR NO KEY UPDATE;

-- :name placements
-- Two stretches of two indexes, side by side; of the wide rows of jobs only the index is read.
SELECT s.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at), s.live > 0, s.load_profile, s.cost_us
  FROM job j JOIN job_state s USING (job_no)
 WHERE j.tenant_no = $1 AND j.state <> 3
   AND j.job_no BETWEEN $2 AND $3 AND s.job_no BETWEEN $2 AND $3
   AND s.active AND s.slot IS NOT NULL
 ORDER BY s.job_no;

-- :name placements_bounds
-- Which jobs a page looks at: the first and the last, and how many. Only an index is read.
SELECT min(job_no), max(job_no), count(*)
  FROM (SELECT job_no FROM job
         WHERE tenant_no = $1 AND state <> 3 AND job_no > $2 ORDER BY job_no LIMIT $3) AS j;

-- :name placements_of
SELECT s.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at), s.live > 0, s.load_profile, s.cost_us
  FROM unnest($2::int8[]) WITH ORDINALITY AS d(job_no, nth)
  JOIN job_state s USING (job_no) JOIN job j USING (job_no)
 WHERE s.tenant_no = $1 AND s.active AND s.slot IS NOT NULL
 ORDER BY d.nth;

-- :name placements_of_few
-- As in placements, for a tenant whose jobs are few among those of others: each is looked up. OFFSET 0
-- keeps the order of the joins.
SELECT j.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at), s.live > 0, s.load_profile, s.cost_us
  FROM job j
 CROSS JOIN LATERAL (SELECT generation, next_at, last_fired_at, placed_at, live, load_profile, cost_us
                       FROM job_state
                      WHERE job_no = j.job_no AND active AND slot IS NOT NULL OFFSET 0) AS s
 WHERE j.tenant_no = $1 AND j.state <> 3 AND j.job_no BETWEEN $2 AND $3
 ORDER BY j.job_no;

-- :name plan_rebalance
INSERT INTO rebalance (id, tenant_no, state, undoes, undone_by, created_by, created_at, touched_at,
                       ended_at, parts, parts_done, planned, moved, changed, skipped, summary)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16);

-- :name plan_rebalance_parts
INSERT INTO rebalance_part (rebalance, part, moves)
SELECT $1, $2 + nth::int4 - 1, moves FROM unnest($3::bytea[]) WITH ORDINALITY AS d(moves, nth);

-- :name rebalance_part
SELECT p.moves, p.made
  FROM rebalance r JOIN rebalance_part p ON p.rebalance = r.id
 WHERE r.id = $1 AND r.tenant_no = $2 AND p.part = $3;
