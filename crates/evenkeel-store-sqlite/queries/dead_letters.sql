-- Dead letters, and jobs that fail repeatedly.

-- :name are_dead
SELECT 1 FROM dead_letter WHERE job_no = ?1 AND scheduled_at = ?2 AND sequence = ?3

-- :name delete_dead
DELETE FROM dead_letter WHERE tenant_no = ?1 AND job_no = ?2 AND scheduled_at = ?3 AND sequence = ?4

-- :name prune_dead_beyond
-- Of a tenant, those that are not among its newest.
DELETE FROM dead_letter
WHERE rowid IN (SELECT rowid FROM dead_letter WHERE tenant_no = ?1
                ORDER BY died_at DESC, scheduled_at DESC, job_no DESC, sequence DESC
                LIMIT ?3 OFFSET ?2)

-- :name prune_dead_find
-- Is any too old, or has a tenant too many?
SELECT EXISTS (SELECT 1 FROM dead_letter WHERE died_at < ?1)
    OR EXISTS (SELECT 1 FROM tenant t
               WHERE EXISTS (SELECT 1 FROM dead_letter d WHERE d.tenant_no = t.tenant_no
                             ORDER BY d.died_at DESC LIMIT 1 OFFSET ?2))

-- :name prune_dead_old
DELETE FROM dead_letter
WHERE rowid IN (SELECT rowid FROM dead_letter WHERE died_at < ?1 ORDER BY died_at LIMIT ?2)

-- :name get_dead
SELECT d.scheduled_at, d.job_no, d.sequence, d.attempt, j.id, j.name, d.died_at, d.reason, d.status,
       d.error, d.redriven_at, d.new_at, d.new_sequence
FROM dead_letter d JOIN job j ON j.job_no = d.job_no
WHERE d.tenant_no = ?1 AND d.job_no = ?2 AND d.scheduled_at = ?3 AND d.sequence = ?4

-- :name list_dead
SELECT d.scheduled_at, d.job_no, d.sequence, d.attempt, j.id, j.name, d.died_at, d.reason, d.status,
       d.error, d.redriven_at, d.new_at, d.new_sequence
FROM dead_letter d JOIN job j ON j.job_no = d.job_no
WHERE d.tenant_no = ?1 AND (d.died_at, d.scheduled_at, d.job_no, d.sequence) < (?2, ?3, ?4, ?5)
  AND (?6 IS NULL OR d.job_no = (SELECT job_no FROM job WHERE id = ?6))
  AND (?7 IS NULL OR (d.redriven_at IS NOT NULL) = ?7)
ORDER BY d.died_at DESC, d.scheduled_at DESC, d.job_no DESC, d.sequence DESC LIMIT ?8 OFFSET ?9

-- :name list_dead_count
SELECT count(*)
FROM (SELECT 1 FROM dead_letter d
      WHERE d.tenant_no = ?1
        AND (?2 IS NULL OR d.job_no = (SELECT job_no FROM job WHERE id = ?2))
        AND (?3 IS NULL OR (d.redriven_at IS NOT NULL) = ?3)
      LIMIT ?4)

-- :name list_failing
SELECT f.job_no, j.id, j.tenant_no, f.runs, s.generation, j.definition
FROM failing f JOIN job j ON j.job_no = f.job_no JOIN job_state s ON s.job_no = f.job_no
WHERE f.is_due AND f.succeeded_runs = s.succeeded_runs ORDER BY f.job_no LIMIT ?1

-- :name prune_failing
DELETE FROM failing WHERE job_no = ?1

-- :name redrive_mark
UPDATE dead_letter SET redriven_at = ?4, new_at = ?5, new_sequence = ?6
WHERE job_no = ?1 AND scheduled_at = ?2 AND sequence = ?3
