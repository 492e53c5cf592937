-- Rebalances: plans that move jobs to other start times, and their moves.

-- :fragment rebalance_columns
id, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts, parts_done,
       planned, moved, changed, skipped, summary

-- :fragment placement_columns
s.generation, s.next_at, s.last_fired_at, coalesce(s.placed_at, j.created_at) AS since,
       s.live > 0 AS is_live, s.load_profile, s.cost_us

-- :name begin_rebalance (tenant, id, silent, undoes, now)
-- Also stops other rebalances that their process has abandoned, so that at most one rebalance is
-- running.
UPDATE rebalance
   SET state = CASE WHEN id = :id THEN {rebalance.running}
                    WHEN id = ANY (:silent::uuid[]) THEN {rebalance.stopped} ELSE state END,
       touched_at = CASE WHEN id = :id THEN :now ELSE touched_at END,
       ended_at = CASE WHEN id = :id THEN NULL WHEN id = ANY (:silent::uuid[]) THEN :now ELSE ended_at END,
       undone_by = CASE WHEN id = :undoes THEN :id ELSE undone_by END
 WHERE tenant_no = :tenant AND (id = :id OR id = :undoes OR id = ANY (:silent::uuid[]));

-- :name begin_rebalance_lock (tenant, now)
-- Without this lock, two rebalances that begin concurrently would not see each other. The lock is
-- not on the tenant's row, because a command waits for that row while it holds jobs that a batch of
-- moves may need.
SELECT {clock}
  FROM (SELECT pg_advisory_xact_lock(
            hashtextextended('evenkeel rebalance ' || current_schema() || ' ' || :tenant::int4, 0))
        OFFSET 0) AS locked;

-- :name begin_rebalance_find (tenant, id)
-- Returns the requested rebalance and all running rebalances. The row lock waits until a batch of
-- moves or a stop has committed.
SELECT {rebalance_columns}
  FROM rebalance
 WHERE tenant_no = :tenant AND (state = {rebalance.running} OR id = :id)
 ORDER BY id FOR NO KEY UPDATE;

-- :name end_rebalance (id, tenant, state, now)
UPDATE rebalance
   SET state = :state,
       ended_at = {clock}
 WHERE id = :id AND tenant_no = :tenant AND state = {rebalance.running};

-- :name prune_balance_parts (plans_before, rebalances_before, limit)
-- Deletes parts of unused plans made before `plans_before`, and of rebalances planned before
-- `rebalances_before`.
DELETE FROM rebalance_part
 WHERE ctid = ANY (ARRAY(
       SELECT p.ctid
         FROM rebalance r JOIN rebalance_part p ON p.rebalance = r.id
        WHERE r.created_at < :plans_before
          AND (r.state = {rebalance.planned} OR (r.created_at < :rebalances_before
                                                 AND (r.state <> {rebalance.running} OR r.touched_at < :rebalances_before)))
        LIMIT :limit));

-- :name prune_balance_plans (before, limit)
DELETE FROM rebalance
 WHERE id = ANY (ARRAY(SELECT id FROM rebalance r WHERE created_at < :before
                       AND state = {rebalance.planned}
                          AND NOT EXISTS (SELECT 1 FROM rebalance_part WHERE rebalance = r.id)
                        ORDER BY created_at LIMIT :limit FOR UPDATE SKIP LOCKED));

-- :name prune_balance_rebalances (before, limit)
-- A running rebalance that was not touched since `before` counts as abandoned.
WITH deleted AS (
    DELETE FROM rebalance
     WHERE id = ANY (ARRAY(SELECT id FROM rebalance WHERE created_at < :before
                              AND (state <> {rebalance.running} OR touched_at < :before)
                            ORDER BY created_at LIMIT :limit FOR UPDATE SKIP LOCKED))
 RETURNING id
), parts AS (
    DELETE FROM rebalance_part WHERE rebalance = ANY (ARRAY(SELECT id FROM deleted))
)
SELECT count(*) FROM deleted;

-- :name prune_balance_scores (before, limit)
DELETE FROM balance_score
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM balance_score WHERE hour < :before LIMIT :limit));

-- :name get_rebalance (id, tenant)
SELECT {rebalance_columns}
  FROM rebalance WHERE id = :id AND tenant_no = :tenant;

-- :name list_rebalances (tenant, before_at, before_id, limit, offset)
SELECT {rebalance_columns}
  FROM rebalance
 WHERE tenant_no = :tenant AND state <> {rebalance.planned}
   AND (created_at, id) < (:before_at, :before_id)
 ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset;

-- :name list_rebalances_count
SELECT count(*) FROM rebalance WHERE tenant_no = $1 AND state <> {rebalance.planned};

-- :name move_jobs (now, tenant, even_live, job_no, generation, old_at, new_at, slot, load_profile)
-- Locks rows in the order that firing uses, and reads their current values. Jobs that have fired in
-- the meantime are not moved, and due jobs are left to the scheduler. A job without a load profile
-- does not get one.
WITH locked AS MATERIALIZED (
    SELECT s.job_no, s.shard, s.tenant_no, s.has_condition, s.counted,
           s.load_profile AS left_profile, s.cost_us,
           d.new_at, d.slot, d.load_profile
      FROM unnest(:job_no::int8[], :generation::int4[], :old_at::int8[], :new_at::int8[],
                  :slot::int4[], :load_profile::int8[])
           AS d(job_no, generation, old_at, new_at, slot, load_profile)
      JOIN job_state s USING (job_no)
     WHERE s.tenant_no = :tenant AND s.active AND s.generation = d.generation
       AND s.next_at = d.old_at
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
        {on_conflict_judge_again}
), notified AS (
    INSERT INTO changed_job (shard, job_no)
    SELECT shard, job_no FROM locked WHERE slot <= :now / 900000000 + 1
        {on_conflict_reload_again}
)
SELECT array_agg(job_no) AS moved,
       array_agg(CASE WHEN counted THEN left_profile END) AS left_profiles,
       array_agg(load_profile) AS joined_profiles, array_agg(cost_us) AS costs
  FROM locked;

-- :name move_jobs_done (rebalance, part, made, moved, changed, now)
WITH kept AS (
    UPDATE rebalance_part SET made = :made WHERE rebalance = :rebalance AND part = :part
)
UPDATE rebalance
   SET parts_done = parts_done + 1, moved = moved + :moved, changed = changed + :changed,
   touched_at = :now
 WHERE id = :rebalance;

-- :name move_jobs_lock (id, tenant, part, now)
-- Either a stop waits until this batch is done, or this batch sees that the rebalance was stopped.
SELECT {clock}
  FROM rebalance
 WHERE id = :id AND tenant_no = :tenant AND state = {rebalance.running} AND parts_done = :part
   AND parts > :part
   FOR NO KEY UPDATE;

-- :name placements (tenant, first, last)
-- Merges ranges of two indexes, so that the wide rows of jobs are not read.
SELECT s.job_no, j.id, {placement_columns}
  FROM job j JOIN job_state s USING (job_no)
 WHERE j.tenant_no = :tenant AND j.state <> {job.deleted}
   AND j.job_no BETWEEN :first AND :last AND s.job_no BETWEEN :first AND :last
   AND s.active AND s.slot IS NOT NULL
 ORDER BY s.job_no;

-- :name placements_bounds (tenant, after, limit)
-- Returns the first and the last job of a page, and the number of its jobs. Reads only an index.
SELECT min(job_no) AS first, max(job_no) AS last, count(*) AS jobs
  FROM (SELECT job_no FROM job
         WHERE tenant_no = :tenant AND state <> {job.deleted}
           AND job_no > :after ORDER BY job_no LIMIT :limit) AS j;

-- :name placements_of (tenant, job_nos)
SELECT s.job_no, j.id, {placement_columns}
  FROM unnest(:job_nos::int8[]) WITH ORDINALITY AS d(job_no, nth)
  JOIN job_state s USING (job_no) JOIN job j USING (job_no)
 WHERE s.tenant_no = :tenant AND s.active AND s.slot IS NOT NULL
 ORDER BY d.nth;

-- :name placements_of_few (tenant, first, last)
-- Does the same as placements for a tenant with few jobs among those of other tenants, by looking
-- each job up. OFFSET 0 keeps the join order.
SELECT j.job_no, j.id, {placement_columns}
  FROM job j
 CROSS JOIN LATERAL (SELECT generation, next_at, last_fired_at, placed_at, live, load_profile,
                     cost_us
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
VALUES (:id, :tenant, :state, :undoes, :undone_by, :created_by, :created_at, :touched_at,
        :ended_at, :parts, :parts_done, :planned, :moved, :changed, :skipped, :summary);

-- :name plan_rebalance_parts (rebalance, first_part, moves)
INSERT INTO rebalance_part (rebalance, part, moves)
SELECT :rebalance, :first_part + nth::int4 - 1,
       moves FROM unnest(:moves::bytea[]) WITH ORDINALITY AS d(moves, nth);

-- :name rebalance_part (id, tenant, part)
SELECT p.moves, p.made
  FROM rebalance r JOIN rebalance_part p ON p.rebalance = r.id
 WHERE r.id = :id AND r.tenant_no = :tenant AND p.part = :part;
