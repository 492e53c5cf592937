-- Targets.

-- :fragment target_columns
t.number, t.source_id, t.name, t.url, t.generation, t.created_at, t.updated_at,
       greatest(t.last_success_at,
                (SELECT max(s.last_good_end_at)
                   FROM job j JOIN job_state s USING (job_no)
                  WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number
                    AND s.last_good_end_at > coalesce(j.target_since, 0))) AS last_success_at,
       (SELECT count(*) FROM job j
         WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number) AS jobs

-- :name change_target (tenant, number, source_id, name, url, now)
UPDATE target
   SET source_id = :source_id, name = :name, url = :url, generation = generation + 1,
       updated_at = {clock}
 WHERE tenant_no = :tenant AND number = :number;

-- :name change_target_lock (tenant, number)
SELECT generation, name FROM target WHERE tenant_no = :tenant AND number = :number FOR UPDATE;

-- :name change_target_source (tenant, source_id, number)
SELECT number FROM target WHERE tenant_no = :tenant AND source_id = :source_id
AND number <> :number;

-- :name create_target (now, tenant, number, source_id, name, url, next_number)
WITH clock AS MATERIALIZED (SELECT {clock} AS now), made AS (
    INSERT INTO target (tenant_no, number, source_id, name, url, created_at, updated_at)
    SELECT :tenant::int4, :number::int8, :source_id::text, :name::text, :url::text, now,
           now FROM clock
        ON CONFLICT DO NOTHING
 RETURNING tenant_no
)
UPDATE numbering n SET targets = targets + 1, next_target = coalesce(:next_number::int8, next_target)
  FROM made WHERE n.tenant_no = made.tenant_no;

-- :name delete_target (tenant, number)
WITH deleted AS (
    DELETE FROM target WHERE tenant_no = :tenant AND number = :number RETURNING tenant_no
)
UPDATE numbering n SET targets = targets - 1 FROM deleted WHERE n.tenant_no = deleted.tenant_no;

-- :name delete_target_detach (tenant, target_no)
-- The jobs of the target get a new generation, and their schedulers reload them.
WITH named AS MATERIALIZED (
    SELECT job_no FROM job WHERE tenant_no = :tenant
    AND target_no = :target_no ORDER BY job_no FOR UPDATE
), states AS MATERIALIZED (
    SELECT s.job_no FROM job_state s JOIN named USING (job_no) ORDER BY s.job_no FOR NO KEY UPDATE OF s
), raised AS (
    UPDATE job_state s SET generation = s.generation + 1
      FROM states WHERE s.job_no = states.job_no
 RETURNING s.job_no, s.shard, s.slot
), notified AS (
    INSERT INTO changed_job (shard, job_no)
    SELECT shard, job_no FROM raised WHERE slot IS NOT NULL
        {on_conflict_reload_again}
)
UPDATE job j SET target_no = NULL, target_since = NULL FROM named WHERE j.job_no = named.job_no;

-- :name delete_target_lock
-- This lock is taken first, as in registrations and the creation of targets, which may wait for
-- rows that the deletion changes.
SELECT tenant_no FROM numbering WHERE tenant_no = $1 FOR UPDATE;

-- :name get_targets (tenant, numbers)
SELECT {target_columns}
  FROM target t WHERE t.tenant_no = :tenant AND t.number = ANY (:numbers::int8[]);

-- :name jobs_of_target (tenant, target_no, after, limit)
SELECT job_no, id FROM job
 WHERE tenant_no = :tenant AND target_no = :target_no AND job_no > :after
 ORDER BY job_no LIMIT :limit;

-- :name list_targets (tenant, after, limit, offset)
SELECT {target_columns}
  FROM target t WHERE t.tenant_no = :tenant AND t.number > :after
 ORDER BY t.number LIMIT :limit OFFSET :offset;

-- :name list_targets_count
SELECT coalesce((SELECT targets FROM numbering WHERE tenant_no = $1), 0);

-- :name create_target_find (tenant, number, source_id)
SELECT number FROM target WHERE tenant_no = :tenant AND number = :number
 UNION ALL
SELECT number FROM target WHERE tenant_no = :tenant AND source_id = :source_id
 LIMIT 1;

-- :name create_target_free (tenant, from)
-- The lowest free number that is at least `from`.
SELECT CASE WHEN NOT EXISTS (SELECT FROM target WHERE tenant_no = :tenant
                             AND number = :from) THEN :from::int8
       ELSE (SELECT t.number + 1 FROM target t
              WHERE t.tenant_no = :tenant AND t.number >= :from
                AND NOT EXISTS (SELECT FROM target n
                                 WHERE n.tenant_no = :tenant AND n.number = t.number + 1)
              ORDER BY t.number LIMIT 1) END;

-- :name create_target_number
-- Locks the row with the tenant's next numbers, which creating targets and registering jobs do
-- first.
INSERT INTO numbering (tenant_no) VALUES ($1)
    ON CONFLICT (tenant_no) DO UPDATE SET next_target = numbering.next_target
RETURNING next_target;

-- :name stale_targets (after_tenant, after_number, limit)
SELECT t.tenant_no, t.number, t.created_at,
       greatest(t.last_success_at, past.last_success_at) AS last_success_at, next.job, next.next_at,
       coalesce(past.is_live, false) AS is_live
  FROM (SELECT tenant_no, number, created_at, last_success_at FROM target
         WHERE (tenant_no, number) > (:after_tenant, :after_number) ORDER BY tenant_no,
         number LIMIT :limit) AS t
 CROSS JOIN LATERAL (
       SELECT max(s.last_good_end_at) FILTER (WHERE s.last_good_end_at > coalesce(j.target_since, 0))
              AS last_success_at,
              bool_or(s.live > 0) AS is_live
         FROM job j JOIN job_state s USING (job_no)
        WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number) AS past
 CROSS JOIN LATERAL (
       SELECT (array_agg(j.id ORDER BY j.job_no))[1] AS job, min(s.next_at) AS next_at
         FROM job j JOIN job_state s USING (job_no)
        WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number AND j.state = {job.active}
          AND j.executor <> 'none') AS next
 ORDER BY t.tenant_no, t.number;

-- :name target_urls (tenant, numbers)
SELECT number, url FROM target WHERE tenant_no = :tenant AND number = ANY (:numbers::int8[]);
