-- Dead letters, and jobs that fail repeatedly.

-- :fragment dead_letter_row
SELECT d.scheduled_at, d.job_no, d.sequence, d.attempt, j.id, j.name, d.died_at, d.reason, d.status,
       d.error, d.redriven_at, d.new_at, d.new_sequence
FROM dead_letter d JOIN job j ON j.job_no = d.job_no

-- :fragment dead_letter_filter
(:job_id IS NULL OR d.job_no = (SELECT job_no FROM job WHERE id = :job_id))
  AND (:redriven IS NULL OR (d.redriven_at IS NOT NULL) = :redriven)

-- :name are_dead
SELECT 1 FROM dead_letter WHERE job_no = ?1 AND scheduled_at = ?2 AND sequence = ?3

-- :name delete_dead (tenant_no, job_no, scheduled_at, sequence)
DELETE FROM dead_letter
WHERE tenant_no = :tenant_no AND job_no = :job_no AND scheduled_at = :scheduled_at
  AND sequence = :sequence

-- :name prune_dead_tenants
SELECT tenant_no FROM tenant

-- :name prune_dead_beyond
-- Deletes the oldest dead letters of a tenant, beyond the newest ?2.
DELETE FROM dead_letter
WHERE rowid IN (SELECT rowid FROM dead_letter WHERE tenant_no = ?1
                ORDER BY died_at DESC, scheduled_at DESC, job_no DESC, sequence DESC
                LIMIT ?3 OFFSET ?2)

-- :name prune_dead_find
-- True if a dead letter is too old or a tenant has too many dead letters.
SELECT EXISTS (SELECT 1 FROM dead_letter WHERE died_at < ?1)
    OR EXISTS (SELECT 1 FROM tenant t
               WHERE EXISTS (SELECT 1 FROM dead_letter d WHERE d.tenant_no = t.tenant_no
                             ORDER BY d.died_at DESC LIMIT 1 OFFSET ?2))

-- :name prune_dead_old
DELETE FROM dead_letter
WHERE rowid IN (SELECT rowid FROM dead_letter WHERE died_at < ?1 ORDER BY died_at LIMIT ?2)

-- :name get_dead (tenant_no, job_no, scheduled_at, sequence)
{dead_letter_row}
WHERE d.tenant_no = :tenant_no AND d.job_no = :job_no AND d.scheduled_at = :scheduled_at
  AND d.sequence = :sequence

-- :name list_dead (
--   tenant_no, died_at, scheduled_at, job_no, sequence, job_id, redriven, limit, offset)
{dead_letter_row}
WHERE d.tenant_no = :tenant_no
  AND (d.died_at, d.scheduled_at, d.job_no, d.sequence) < (:died_at, :scheduled_at, :job_no, :sequence)
  AND {dead_letter_filter}
ORDER BY d.died_at DESC, d.scheduled_at DESC, d.job_no DESC, d.sequence DESC
LIMIT :limit OFFSET :offset

-- :name list_dead_count (tenant_no, job_id, redriven, limit)
SELECT count(*)
FROM (SELECT 1 FROM dead_letter d
      WHERE d.tenant_no = :tenant_no
        AND {dead_letter_filter}
      LIMIT :limit)

-- :name list_failing
SELECT f.job_no, j.id, j.tenant_no, f.runs, s.generation, j.definition
FROM failing f JOIN job j ON j.job_no = f.job_no JOIN job_state s ON s.job_no = f.job_no
WHERE f.is_due AND f.succeeded_runs = s.succeeded_runs ORDER BY f.job_no LIMIT ?1

-- :name prune_failing
DELETE FROM failing WHERE job_no = ?1

-- :name redrive_mark (job_no, scheduled_at, sequence, redriven_at, new_at, new_sequence)
UPDATE dead_letter
SET redriven_at = :redriven_at, new_at = :new_at, new_sequence = :new_sequence
WHERE job_no = :job_no AND scheduled_at = :scheduled_at AND sequence = :sequence
