-- Rebalances: plans that move jobs to other start times, and their moves.

-- :fragment rebalance_columns
id, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts,
       parts_done, planned, moved, changed, skipped, summary

-- :fragment placement_columns
j.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at) AS placed_at, s.live, s.load_profile, s.cost_us

-- :name begin_rebalance
UPDATE rebalance SET state = {rebalance.running}, touched_at = ?3, ended_at = NULL
WHERE id = ?2 AND tenant_no = ?1

-- :name begin_rebalance_other
-- Another running rebalance of the tenant that made progress since ?3.
SELECT id FROM rebalance
WHERE tenant_no = ?1 AND state = {rebalance.running} AND id <> ?2 AND touched_at > ?3 LIMIT 1

-- :name begin_rebalance_stop
UPDATE rebalance SET state = {rebalance.stopped}, ended_at = ?3
WHERE tenant_no = ?1 AND state = {rebalance.running} AND id <> ?2

-- :name begin_rebalance_undo
UPDATE rebalance SET undone_by = ?3 WHERE id = ?2 AND tenant_no = ?1

-- :name end_rebalance (tenant_no, id, state, ended_at)
UPDATE rebalance SET state = :state, ended_at = :ended_at
WHERE id = :id AND tenant_no = :tenant_no AND state = {rebalance.running}

-- :name prune_balance_find
SELECT EXISTS (SELECT 1 FROM balance_score WHERE hour < ?1)
    OR EXISTS (SELECT 1 FROM rebalance WHERE created_at < ?2 AND state <> {rebalance.running})
    OR EXISTS (SELECT 1 FROM rebalance
               WHERE created_at < ?2 AND state = {rebalance.running} AND touched_at < ?2)

-- :name prune_balance_parts
DELETE FROM rebalance_part WHERE rebalance_no = ?1

-- :name prune_balance_parts_some
-- Deletes parts of plans made before ?1 that were never started, and of rebalances planned before ?2. A
-- running rebalance without progress since ?2 counts as abandoned.
DELETE FROM rebalance_part WHERE rowid IN
    (SELECT p.rowid
     FROM (SELECT rebalance_no FROM rebalance
           WHERE created_at < ?1 AND state <> {rebalance.running}
             AND (state = {rebalance.planned} OR created_at < ?2)
           UNION ALL
           SELECT rebalance_no FROM rebalance
           WHERE created_at < ?2 AND state = {rebalance.running} AND touched_at < ?2) AS r
     JOIN rebalance_part p ON p.rebalance_no = r.rebalance_no
     LIMIT ?3)

-- :name prune_balance_plans
-- A running rebalance without progress since ?1 counts as abandoned.
DELETE FROM rebalance WHERE rebalance_no IN
    (SELECT rebalance_no FROM
        (SELECT rebalance_no, created_at FROM rebalance
         WHERE created_at < ?1 AND state <> {rebalance.running}
         UNION ALL
         SELECT rebalance_no, created_at FROM rebalance
         WHERE created_at < ?1 AND state = {rebalance.running} AND touched_at < ?1)
     ORDER BY created_at LIMIT ?2)
RETURNING rebalance_no

-- :name prune_balance_scores
DELETE FROM balance_score WHERE (tenant_no, hour) IN
    (SELECT tenant_no, hour FROM balance_score WHERE hour < ?1 ORDER BY hour LIMIT ?2)

-- :name prune_balance_unused
-- Deletes plans that were never started.
DELETE FROM rebalance WHERE rebalance_no IN
    (SELECT rebalance_no FROM rebalance
     WHERE created_at < ?1 AND state <> {rebalance.running} AND state = {rebalance.planned}
     ORDER BY created_at LIMIT ?2)

-- :name prune_balance_unused_find
SELECT EXISTS (SELECT 1 FROM rebalance
               WHERE created_at < ?1 AND state <> {rebalance.running}
                 AND state = {rebalance.planned})

-- :name get_rebalance
SELECT {rebalance_columns}
FROM rebalance WHERE id = ?2 AND tenant_no = ?1

-- :name list_rebalances (tenant_no, created_at, id, limit, offset)
SELECT {rebalance_columns}
FROM rebalance
WHERE tenant_no = :tenant_no AND state <> {rebalance.planned} AND (created_at, id) < (:created_at, :id)
ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset

-- :name list_rebalances_count
SELECT count(*) FROM rebalance WHERE tenant_no = ?1 AND state <> {rebalance.planned}

-- :name move_jobs (job_no, next_at, slot, placed_at, load_profile)
-- A job without a load profile (0) does not get one.
UPDATE job_state
SET next_at = :next_at, slot = :slot, placed_at = :placed_at, generation = generation + 1,
    load_profile = CASE WHEN load_profile <> 0 THEN :load_profile ELSE load_profile END
WHERE job_no = :job_no

-- :name move_jobs_done (rebalance_no, touched_at, moved, changed)
UPDATE rebalance
SET parts_done = parts_done + 1, touched_at = :touched_at, moved = moved + :moved,
    changed = changed + :changed
WHERE rebalance_no = :rebalance_no

-- :name move_jobs_is_running
SELECT rebalance_no FROM rebalance
WHERE id = ?2 AND tenant_no = ?1 AND state = {rebalance.running} AND parts_done = ?3 AND parts > ?3

-- :name move_jobs_find (job_no, tenant_no, generation, next_at, even_if_live, fired_before)
SELECT load_profile, cost_us FROM job_state
WHERE job_no = :job_no AND tenant_no = :tenant_no AND active = 1 AND generation = :generation
  AND next_at = :next_at AND (:even_if_live OR live = 0)
  AND (last_fired_at IS NULL OR last_fired_at < :fired_before)

-- :name move_jobs_made
UPDATE rebalance_part SET made = ?3 WHERE rebalance_no = ?1 AND part = ?2

-- :name placements
SELECT {placement_columns}
FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.tenant_no = ?1 AND j.state <> {job.deleted} AND j.job_no > ?2
  AND s.active = 1 AND s.next_at IS NOT NULL
ORDER BY j.job_no LIMIT ?3

-- :name placements_of
SELECT {placement_columns}
FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.job_no = ?2 AND s.tenant_no = ?1 AND s.active = 1 AND s.next_at IS NOT NULL

-- :name plan_rebalance (
--   id, tenant_no, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts,
--   parts_done, planned, moved, changed, skipped, summary)
INSERT INTO rebalance (id, tenant_no, state, undoes, undone_by, created_by, created_at, touched_at,
                       ended_at, parts, parts_done, planned, moved, changed, skipped, summary)
VALUES (:id, :tenant_no, :state, :undoes, :undone_by, :created_by, :created_at, :touched_at,
        :ended_at, :parts, :parts_done, :planned, :moved, :changed, :skipped, :summary)

-- :name plan_rebalance_parts
INSERT INTO rebalance_part (rebalance_no, part, moves) VALUES (?1, ?2, ?3)

-- :name rebalance_part
SELECT p.moves, p.made FROM rebalance r JOIN rebalance_part p ON p.rebalance_no = r.rebalance_no
WHERE r.id = ?2 AND r.tenant_no = ?1 AND p.part = ?3
