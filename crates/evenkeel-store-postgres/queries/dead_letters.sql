-- Dead letters, and jobs that fail repeatedly.

-- :fragment dead_letter_columns
d.scheduled_at, d.job_no, d.sequence, d.attempt, j.id AS job_id, j.name AS job_name, d.died_at,
       d.reason, d.status, d.error, d.redriven_at, d.new_at, d.new_sequence

-- :name are_dead (job_no, scheduled_at, sequence)
SELECT d.scheduled_at, d.job_no, d.sequence, d.attempt
  FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[])
       AS w(job_no, scheduled_at, sequence)
  JOIN dead_letter d USING (job_no, scheduled_at, sequence);

-- :name delete_dead (tenant, job_no, scheduled_at, sequence)
DELETE FROM dead_letter d
 USING unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[])
      AS w(job_no, scheduled_at, sequence)
 WHERE d.tenant_no = :tenant AND d.job_no = w.job_no AND d.scheduled_at = w.scheduled_at
   AND d.sequence = w.sequence
RETURNING d.scheduled_at, d.job_no, d.sequence, d.attempt;

-- :name prune_dead_beyond (keep, limit)
-- Deletes the oldest dead letters of each tenant, beyond the newest `keep`.
DELETE FROM dead_letter
 WHERE ctid = ANY (ARRAY(
           SELECT d.ctid FROM tenant t
            CROSS JOIN LATERAL (
                  SELECT ctid FROM dead_letter d WHERE d.tenant_no = t.tenant_no
                   ORDER BY died_at DESC, scheduled_at DESC, job_no DESC, sequence DESC
                  OFFSET :keep LIMIT :limit) AS d
            LIMIT :limit));

-- :name prune_dead_old (before, limit)
DELETE FROM dead_letter
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM dead_letter WHERE died_at < :before
                          ORDER BY died_at LIMIT :limit FOR UPDATE SKIP LOCKED));

-- :name get_dead (tenant, job_no, scheduled_at, sequence)
SELECT {dead_letter_columns}
  FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[])
       AS w(job_no, scheduled_at, sequence)
  JOIN dead_letter d USING (job_no, scheduled_at, sequence) JOIN job j USING (job_no)
 WHERE d.tenant_no = :tenant;

-- :name list_dead (
--   tenant, before_died_at, before_at, before_job_no, before_sequence, job_id, redriven, limit,
--   offset
-- )
SELECT {dead_letter_columns}
  FROM dead_letter d JOIN job j USING (job_no)
 WHERE d.tenant_no = :tenant AND (d.died_at, d.scheduled_at, d.job_no,
                                  d.sequence) < (:before_died_at, :before_at, :before_job_no,
                                                 :before_sequence)
   AND (:job_id::uuid IS NULL OR d.job_no = (SELECT job_no FROM job WHERE id = :job_id))
   AND (:redriven::bool IS NULL OR (d.redriven_at IS NOT NULL) = :redriven)
 ORDER BY d.died_at DESC, d.scheduled_at DESC, d.job_no DESC,
 d.sequence DESC LIMIT :limit OFFSET :offset;

-- :name list_dead_count (tenant, job_id, redriven, limit)
SELECT count(*)
  FROM (SELECT FROM dead_letter d
         WHERE d.tenant_no = :tenant
           AND (:job_id::uuid IS NULL OR d.job_no = (SELECT job_no FROM job WHERE id = :job_id))
           AND (:redriven::bool IS NULL OR (d.redriven_at IS NOT NULL) = :redriven)
         LIMIT :limit) AS counted;

-- :name list_failing
SELECT f.job_no, j.id, j.tenant_no, f.runs, s.generation, j.definition
  FROM failing f JOIN job j USING (job_no) JOIN job_state s USING (job_no)
 WHERE f.is_due AND f.succeeded_runs = s.succeeded_runs ORDER BY f.job_no LIMIT $1;

-- :name prune_failing
DELETE FROM failing WHERE job_no = ANY ($1::int8[]);

-- :name redrive_lock (tenant, job_no, scheduled_at, sequence)
-- Locks dead letters in key order and after the rows of their jobs, as every redrive does.
SELECT job_no, scheduled_at, sequence, redriven_at, new_at, new_sequence
  FROM dead_letter
 WHERE tenant_no = :tenant
   AND (job_no, scheduled_at, sequence)
       IN (SELECT * FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[]))
 ORDER BY job_no, scheduled_at, sequence FOR UPDATE;

-- :name redrive_mark (job_no, scheduled_at, sequence, now, new_at, new_sequence)
UPDATE dead_letter SET redriven_at = :now, new_at = :new_at, new_sequence = :new_sequence
 WHERE job_no = :job_no AND scheduled_at = :scheduled_at AND sequence = :sequence;
