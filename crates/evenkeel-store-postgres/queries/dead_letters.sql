-- Dead letters, and jobs that fail repeatedly.

-- :name are_dead
SELECT d.scheduled_at, d.job_no, d.sequence, d.attempt
  FROM unnest($1::int8[], $2::int8[], $3::int4[]) AS w(job_no, scheduled_at, sequence)
  JOIN dead_letter d USING (job_no, scheduled_at, sequence);

-- :name delete_dead
DELETE FROM dead_letter d
 USING unnest($2::int8[], $3::int8[], $4::int4[]) AS w(job_no, scheduled_at, sequence)
 WHERE d.tenant_no = $1 AND d.job_no = w.job_no AND d.scheduled_at = w.scheduled_at
   AND d.sequence = w.sequence
RETURNING d.scheduled_at, d.job_no, d.sequence, d.attempt;

-- :name prune_dead_beyond
-- Of each tenant, those that are not among its newest.
DELETE FROM dead_letter
 WHERE ctid = ANY (ARRAY(
           SELECT d.ctid FROM tenant t
            CROSS JOIN LATERAL (
                  SELECT ctid FROM dead_letter d WHERE d.tenant_no = t.tenant_no
                   ORDER BY died_at DESC, scheduled_at DESC, job_no DESC, sequence DESC
                  OFFSET $1 LIMIT $2) AS d
            LIMIT $2));

-- :name prune_dead_old
DELETE FROM dead_letter
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM dead_letter WHERE died_at < $1
                          ORDER BY died_at LIMIT $2 FOR UPDATE SKIP LOCKED));

-- :name get_dead
SELECT d.scheduled_at, d.job_no, d.sequence, d.attempt, j.id, j.name, d.died_at, d.reason, d.status,
       d.error, d.redriven_at, d.new_at, d.new_sequence
  FROM unnest($2::int8[], $3::int8[], $4::int4[]) AS w(job_no, scheduled_at, sequence)
  JOIN dead_letter d USING (job_no, scheduled_at, sequence) JOIN job j USING (job_no)
 WHERE d.tenant_no = $1;

-- :name list_dead
SELECT d.scheduled_at, d.job_no, d.sequence, d.attempt, j.id, j.name, d.died_at, d.reason, d.status,
       d.error, d.redriven_at, d.new_at, d.new_sequence
  FROM dead_letter d JOIN job j USING (job_no)
 WHERE d.tenant_no = $1 AND (d.died_at, d.scheduled_at, d.job_no, d.sequence) < ($2, $3, $4, $5)
   AND ($6::uuid IS NULL OR d.job_no = (SELECT job_no FROM job WHERE id = $6))
   AND ($7::bool IS NULL OR (d.redriven_at IS NOT NULL) = $7)
 ORDER BY d.died_at DESC, d.scheduled_at DESC, d.job_no DESC, d.sequence DESC LIMIT $8 OFFSET $9;

-- :name list_dead_count
SELECT count(*)
  FROM (SELECT FROM dead_letter d
         WHERE d.tenant_no = $1
           AND ($2::uuid IS NULL OR d.job_no = (SELECT job_no FROM job WHERE id = $2))
           AND ($3::bool IS NULL OR (d.redriven_at IS NOT NULL) = $3)
         LIMIT $4) AS counted;

-- :name list_failing
SELECT f.job_no, j.id, j.tenant_no, f.runs, s.generation, j.definition
  FROM failing f JOIN job j USING (job_no) JOIN job_state s USING (job_no)
 WHERE f.is_due AND f.succeeded_runs = s.succeeded_runs ORDER BY f.job_no LIMIT $1;

-- :name prune_failing
DELETE FROM failing WHERE job_no = ANY ($1::int8[]);

-- :name redrive_lock
-- In the order of the key, after the rows of their jobs: so does everybody who takes letters up.
SELECT job_no, scheduled_at, sequence, redriven_at, new_at, new_sequence
  FROM dead_letter
 WHERE tenant_no = $1
   AND (job_no, scheduled_at, sequence) IN (SELECT * FROM unnest($2::int8[], $3::int8[], $4::int4[]))
 ORDER BY job_no, scheduled_at, sequence FOR UPDATE;

-- :name redrive_mark
UPDATE dead_letter SET redriven_at = $4, new_at = $5, new_sequence = $6
 WHERE job_no = $1 AND scheduled_at = $2 AND sequence = $3;
