-- Plans to move jobs, and their moves.

-- :name begin_rebalance
UPDATE rebalance SET state = 1, touched_at = ?3, ended_at = NULL WHERE id = ?2 AND tenant_no = ?1

-- :name begin_rebalance_other
-- Another one of the tenant that goes on and was touched lately.
SELECT id FROM rebalance
WHERE tenant_no = ?1 AND state = 1 AND id <> ?2 AND touched_at > ?3 LIMIT 1

-- :name begin_rebalance_stop
UPDATE rebalance SET state = 3, ended_at = ?3 WHERE tenant_no = ?1 AND state = 1 AND id <> ?2

-- :name begin_rebalance_undo
UPDATE rebalance SET undone_by = ?3 WHERE id = ?2 AND tenant_no = ?1

-- :name end_rebalance
UPDATE rebalance SET state = ?3, ended_at = ?4 WHERE id = ?2 AND tenant_no = ?1 AND state = 1

-- :name prune_balance_find
SELECT EXISTS (SELECT 1 FROM balance_score WHERE hour < ?1)
    OR EXISTS (SELECT 1 FROM rebalance WHERE created_at < ?2 AND state <> 1)
    OR EXISTS (SELECT 1 FROM rebalance WHERE created_at < ?2 AND state = 1 AND touched_at < ?2)

-- :name prune_balance_parts
DELETE FROM rebalance_part WHERE rebalance_no = ?1

-- :name prune_balance_parts_some
-- Of plans made before ?1 that nobody acted on, and of rebalances planned before ?2. Those that go on
-- and were not touched for so long go on only in name.
DELETE FROM rebalance_part WHERE rowid IN
    (SELECT p.rowid
     FROM (SELECT rebalance_no FROM rebalance
           WHERE created_at < ?1 AND state <> 1 AND (state = 0 OR created_at < ?2)
           UNION ALL
           SELECT rebalance_no FROM rebalance
           WHERE created_at < ?2 AND state = 1 AND touched_at < ?2) AS r
     JOIN rebalance_part p ON p.rebalance_no = r.rebalance_no
     LIMIT ?3)

-- :name prune_balance_plans
-- What goes on and was not touched for so long goes on only in name.
DELETE FROM rebalance WHERE rebalance_no IN
    (SELECT rebalance_no FROM
        (SELECT rebalance_no, created_at FROM rebalance WHERE created_at < ?1 AND state <> 1
         UNION ALL
         SELECT rebalance_no, created_at FROM rebalance
         WHERE created_at < ?1 AND state = 1 AND touched_at < ?1)
     ORDER BY created_at LIMIT ?2)
RETURNING rebalance_no

-- :name prune_balance_scores
DELETE FROM balance_score WHERE (tenant_no, hour) IN
    (SELECT tenant_no, hour FROM balance_score WHERE hour < ?1 ORDER BY hour LIMIT ?2)

-- :name prune_balance_unused
-- Plans that nobody acted on.
DELETE FROM rebalance WHERE rebalance_no IN
    (SELECT rebalance_no FROM rebalance WHERE created_at < ?1 AND state <> 1 AND state = 0
     ORDER BY created_at LIMIT ?2)

-- :name prune_balance_unused_find
SELECT EXISTS (SELECT 1 FROM rebalance WHERE created_at < ?1 AND state <> 1 AND state = 0)

-- :name get_rebalance
SELECT id, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts,
       parts_done, planned, moved, changed, skipped, summary
FROM rebalance WHERE id = ?2 AND tenant_no = ?1

-- :name list_rebalances
SELECT id, state, undoes, undone_by, created_by, created_at, touched_at, ended_at, parts,
       parts_done, planned, moved, changed, skipped, summary
FROM rebalance
WHERE tenant_no = ?1 AND state <> 0 AND (created_at, id) < (?2, ?3)
ORDER BY created_at DESC, id DESC LIMIT ?4 OFFSET ?5

-- :name list_rebalances_count
SELECT count(*) FROM rebalance WHERE tenant_no = ?1 AND state <> 0

-- :name move_jobs
-- What counts for nothing still does, and what nobody has looked at is looked at later.
UPDATE job_state
SET next_at = ?2, slot = ?3, placed_at = ?4, generation = generation + 1,
    load_profile = CASE WHEN load_profile <> 0 THEN ?5 ELSE load_profile END
WHERE job_no = ?1

-- :name move_jobs_done
UPDATE rebalance
SET parts_done = parts_done + 1, touched_at = ?2, moved = moved + ?3, changed = changed + ?4
WHERE rebalance_no = ?1

-- :name move_jobs_is_running
SELECT rebalance_no FROM rebalance
WHERE id = ?2 AND tenant_no = ?1 AND state = 1 AND parts_done = ?3 AND parts > ?3

-- :name move_jobs_find
SELECT load_profile, cost_us FROM job_state
WHERE job_no = ?1 AND tenant_no = ?2 AND active = 1 AND generation = ?3 AND next_at = ?4
  AND (?5 OR live = 0) AND (last_fired_at IS NULL OR last_fired_at < ?6)

-- :name move_jobs_made
UPDATE rebalance_part SET made = ?3 WHERE rebalance_no = ?1 AND part = ?2

-- :name placements
SELECT j.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at) AS placed_at, s.live, s.load_profile, s.cost_us
FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.tenant_no = ?1 AND j.state <> 3 AND j.job_no > ?2
  AND s.active = 1 AND s.next_at IS NOT NULL
ORDER BY j.job_no LIMIT ?3

-- :name placements_of
SELECT j.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at) AS placed_at, s.live, s.load_profile, s.cost_us
FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.job_no = ?2 AND s.tenant_no = ?1 AND s.active = 1 AND s.next_at IS NOT NULL

-- :name plan_rebalance
INSERT INTO rebalance (id, tenant_no, state, undoes, undone_by, created_by, created_at, touched_at,
                       ended_at, parts, parts_done, planned, moved, changed, skipped, summary)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)

-- :name plan_rebalance_part
INSERT INTO rebalance_part (rebalance_no, part, moves) VALUES (?1, ?2, ?3)

-- :name rebalance_part
SELECT p.moves, p.made FROM rebalance r JOIN rebalance_part p ON p.rebalance_no = r.rebalance_no
WHERE r.id = ?2 AND r.tenant_no = ?1 AND p.part = ?3
