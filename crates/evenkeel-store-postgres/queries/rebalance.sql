-- Plans to move jobs, and their moves.

-- :name begin_rebalance (tenant, id, silent, undoes, now)
-- Others that went on and were left by whoever did that are stopped, so that one goes on at most.
UPDATE rebalance
   SET state = CASE WHEN id = :id THEN 1 WHEN id = ANY (:silent::uuid[]) THEN 3 ELSE state END,
       touched_at = CASE WHEN id = :id THEN :now ELSE touched_at END,
       ended_at = CASE WHEN id = :id THEN NULL WHEN id = ANY (:silent::uuid[]) THEN :now ELSE ended_at END,
       undone_by = CASE WHEN id = :undoes THEN :id ELSE undone_by END
 WHERE tenant_no = :tenant AND (id = :id OR id = :undoes OR id = ANY (:silent::uuid[]));

-- :name begin_rebalance_lock (tenant, now)
-- Two that begin at once would not see each other. Not the tenant's row: an order waits for that with
-- jobs locked that a batch of moves may want.
SELECT coalesce(:now::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
  FROM (SELECT pg_advisory_xact_lock(
            hashtextextended('evenkeel rebalance ' || current_schema() || ' ' || :tenant::int4, 0))
        OFFSET 0) AS locked;

-- :name begin_rebalance_find (tenant, id)
-- The one that is wanted, and all that go on. Whoever moves a batch or stops one is waited for.
SELECT id, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts, parts_done,
       planned, moved, changed, skipped, summary
  FROM rebalance
 WHERE tenant_no = :tenant AND (state = {rebalance.running} OR id = :id)
 ORDER BY id FOR NO KEY UPDATE;

-- :name end_rebalance (id, tenant, state, now)
UPDATE rebalance
   SET state = :state,
       ended_at = coalesce(:now::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
 WHERE id = :id AND tenant_no = :tenant AND state = {rebalance.running};

-- :name prune_balance_parts (plans_before, rebalances_before, limit)
-- Of plans made before `plans_before` that nobody acted on, and of rebalances planned before `rebalances_before`.
DELETE FROM rebalance_part
 WHERE ctid = ANY (ARRAY(
       SELECT p.ctid
         FROM rebalance r JOIN rebalance_part p ON p.rebalance = r.id
        WHERE r.created_at < :plans_before AND (r.state = {rebalance.planned} OR (r.created_at < :rebalances_before AND (r.state <> {rebalance.running} OR r.touched_at < :rebalances_before)))
        LIMIT :limit));

-- :name prune_balance_plans (before, limit)
DELETE FROM rebalance
 WHERE id = ANY (ARRAY(SELECT id FROM rebalance r WHERE created_at < :before AND state = {rebalance.planned}
                          AND NOT EXISTS (SELECT 1 FROM rebalance_part WHERE rebalance = r.id)
                        ORDER BY created_at LIMIT :limit FOR UPDATE SKIP LOCKED));

-- :name prune_balance_rebalances (before, limit)
-- What goes on and was not touched for so long goes on only in name.
WITH gone AS (
    DELETE FROM rebalance
     WHERE id = ANY (ARRAY(SELECT id FROM rebalance WHERE created_at < :before
                              AND (state <> {rebalance.running} OR touched_at < :before)
                            ORDER BY created_at LIMIT :limit FOR UPDATE SKIP LOCKED))
 RETURNING id
), parts AS (
    DELETE FROM rebalance_part WHERE rebalance = ANY (ARRAY(SELECT id FROM gone))
)
SELECT count(*) FROM gone;

-- :name prune_balance_scores (before, limit)
DELETE FROM balance_score
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM balance_score WHERE hour < :before LIMIT :limit));

-- :name get_rebalance (id, tenant)
SELECT id, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts, parts_done,
       planned, moved, changed, skipped, summary
  FROM rebalance WHERE id = :id AND tenant_no = :tenant;

-- :name list_rebalances (tenant, before_at, before_id, limit, offset)
SELECT id, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts, parts_done,
       planned, moved, changed, skipped, summary
  FROM rebalance
 WHERE tenant_no = :tenant AND state <> {rebalance.planned} AND (created_at, id) < (:before_at, :before_id)
 ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset;

-- :name list_rebalances_count
SELECT count(*) FROM rebalance WHERE tenant_no = $1 AND state <> {rebalance.planned};

-- :name move_jobs (now, tenant, even_live, job_no, generation, old_at, new_at, slot, load_profile)
-- Rows are locked in the order in which firing does, whatever the plan, and looked at as they are by
-- then. What firing was quicker with stays as it is, and what is due is left to it. A job that nobody
-- has counted yet is moved without its count.
WITH locked AS MATERIALIZED (
    SELECT s.job_no, s.shard, s.tenant_no, s.has_condition, s.counted, s.load_profile AS left_profile, s.cost_us,
           d.new_at, d.slot, d.load_profile
      FROM unnest(:job_no::int8[], :generation::int4[], :old_at::int8[], :new_at::int8[], :slot::int4[], :load_profile::int8[])
           AS d(job_no, generation, old_at, new_at, slot, load_profile)
      JOIN job_state s USING (job_no)
     WHERE s.tenant_no = :tenant AND s.active AND s.generation = d.generation AND s.next_at = d.old_at
       AND (s.live = 0 OR :even_live) AND d.new_at > :now::int8 AND d.old_at > :now::int8
       AND d.new_at > coalesce(s.last_fired_at, d.new_at - 1)
     ORDER BY s.job_no FOR NO KEY UPDATE OF s
), moved AS (
    UPDATE job_state s
       SET generation = s.generation + 1, next_at = l.new_at, slot = l.slot, placed_at = :now,
           load_profile = CASE WHEN l.counted THEN l.load_profile ELSE s.load_profile END
      FROM locked l WHERE s.job_no = l.job_no
), touched AS (
    INSERT INTO job_condition (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM locked WHERE has_condition
        ON CONFLICT (job_no) DO UPDATE SET judge_at = 0, touched = excluded.touched
), told AS (
    -- written even if it is there: whoever is just telling it read the job before this
    INSERT INTO changed_job (shard, job_no)
    SELECT shard, job_no FROM locked WHERE slot <= :now / 900000000 + 1
        ON CONFLICT (shard, job_no) DO UPDATE SET job_no = excluded.job_no
)
SELECT array_agg(job_no), array_agg(CASE WHEN counted THEN left_profile END), array_agg(load_profile),
       array_agg(cost_us)
  FROM locked;

-- :name move_jobs_done (rebalance, part, made, moved, changed, now)
WITH kept AS (
    UPDATE rebalance_part SET made = :made WHERE rebalance = :rebalance AND part = :part
)
UPDATE rebalance
   SET parts_done = parts_done + 1, moved = moved + :moved, changed = changed + :changed, touched_at = :now
 WHERE id = :rebalance;

-- :name move_jobs_lock (id, tenant, part, now)
-- Whoever stops it waits until this batch is done, or this sees that it was stopped.
SELECT coalesce(:now::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
  FROM rebalance
 WHERE id = :id AND tenant_no = :tenant AND state = {rebalance.running} AND parts_done = :part AND parts > :part
   FOR NO KEY UPDATE;

-- :name placements (tenant, first, last)
-- Two stretches of two indexes, side by side; of the wide rows of jobs only the index is read.
SELECT s.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at), s.live > 0, s.load_profile, s.cost_us
  FROM job j JOIN job_state s USING (job_no)
 WHERE j.tenant_no = :tenant AND j.state <> {job.deleted}
   AND j.job_no BETWEEN :first AND :last AND s.job_no BETWEEN :first AND :last
   AND s.active AND s.slot IS NOT NULL
 ORDER BY s.job_no;

-- :name placements_bounds (tenant, after, limit)
-- Which jobs a page looks at: the first and the last, and how many. Only an index is read.
SELECT min(job_no), max(job_no), count(*)
  FROM (SELECT job_no FROM job
         WHERE tenant_no = :tenant AND state <> {job.deleted} AND job_no > :after ORDER BY job_no LIMIT :limit) AS j;

-- :name placements_of (tenant, job_nos)
SELECT s.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at), s.live > 0, s.load_profile, s.cost_us
  FROM unnest(:job_nos::int8[]) WITH ORDINALITY AS d(job_no, nth)
  JOIN job_state s USING (job_no) JOIN job j USING (job_no)
 WHERE s.tenant_no = :tenant AND s.active AND s.slot IS NOT NULL
 ORDER BY d.nth;

-- :name placements_of_few (tenant, first, last)
-- As in placements, for a tenant whose jobs are few among those of others: each is looked up. OFFSET 0
-- keeps the order of the joins.
SELECT j.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at), s.live > 0, s.load_profile, s.cost_us
  FROM job j
 CROSS JOIN LATERAL (SELECT generation, next_at, last_fired_at, placed_at, live, load_profile, cost_us
                       FROM job_state
                      WHERE job_no = j.job_no AND active AND slot IS NOT NULL OFFSET 0) AS s
 WHERE j.tenant_no = :tenant AND j.state <> {job.deleted} AND j.job_no BETWEEN :first AND :last
 ORDER BY j.job_no;

-- :name plan_rebalance (
--   id, tenant, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts,
--   parts_done, planned, moved, changed, skipped, summary
-- )
INSERT INTO rebalance (id, tenant_no, state, undoes, undone_by, created_by, created_at, touched_at,
                       ended_at, parts, parts_done, planned, moved, changed, skipped, summary)
VALUES (:id, :tenant, :state, :undoes, :undone_by, :created_by, :created_at, :touched_at, :ended_at, :parts, :parts_done, :planned, :moved, :changed, :skipped, :summary);

-- :name plan_rebalance_parts (rebalance, first_part, moves)
INSERT INTO rebalance_part (rebalance, part, moves)
SELECT :rebalance, :first_part + nth::int4 - 1, moves FROM unnest(:moves::bytea[]) WITH ORDINALITY AS d(moves, nth);

-- :name rebalance_part (id, tenant, part)
SELECT p.moves, p.made
  FROM rebalance r JOIN rebalance_part p ON p.rebalance = r.id
 WHERE r.id = :id AND r.tenant_no = :tenant AND p.part = :part;
