-- Targets.

-- :name change_target
UPDATE target
   SET source_id = $3, name = $4, url = $5, generation = generation + 1,
       updated_at = coalesce($6::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
 WHERE tenant_no = $1 AND number = $2;

-- :name change_target_lock
SELECT generation FROM target WHERE tenant_no = $1 AND number = $2 FOR UPDATE;

-- :name change_target_source
SELECT number FROM target WHERE tenant_no = $1 AND source_id = $2 AND number <> $3;

-- :name create_target
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), made AS (
    INSERT INTO target (tenant_no, number, source_id, name, url, created_at, updated_at)
    SELECT $2::int4, $3::int8, $4::text, $5::text, $6::text, now, now FROM clock
        ON CONFLICT DO NOTHING
 RETURNING tenant_no
)
UPDATE numbering n SET targets = targets + 1, next_target = coalesce($7::int8, next_target)
  FROM made WHERE n.tenant_no = made.tenant_no;

-- :name delete_target
WITH gone AS (
    DELETE FROM target WHERE tenant_no = $1 AND number = $2 RETURNING tenant_no
)
UPDATE numbering n SET targets = targets - 1 FROM gone WHERE n.tenant_no = gone.tenant_no;

-- :name delete_target_detach
-- Whoever shows one of them to somebody shows another version from then on, and their schedulers are
-- told, who hold the old one.
WITH named AS MATERIALIZED (
    SELECT job_no FROM job WHERE tenant_no = $1 AND target_no = $2 ORDER BY job_no FOR UPDATE
), states AS MATERIALIZED (
    SELECT s.job_no FROM job_state s JOIN named USING (job_no) ORDER BY s.job_no FOR NO KEY UPDATE OF s
), raised AS (
    UPDATE job_state s SET generation = s.generation + 1
      FROM states WHERE s.job_no = states.job_no
 RETURNING s.job_no, s.shard, s.slot
), told AS (
    INSERT INTO changed_job (shard, job_no)
    SELECT shard, job_no FROM raised WHERE slot IS NOT NULL
        ON CONFLICT (shard, job_no) DO UPDATE SET job_no = excluded.job_no
)
UPDATE job j SET target_no = NULL, target_since = NULL FROM named WHERE j.job_no = named.job_no;

-- :name delete_target_lock
-- First of all, as by whoever makes one or registers jobs: those may wait for rows that this changes.
SELECT tenant_no FROM numbering WHERE tenant_no = $1 FOR UPDATE;

-- :name get_targets
SELECT t.number, t.source_id, t.name, t.url, t.generation, t.created_at, t.updated_at,
       greatest(t.last_success_at,
                (SELECT max(s.last_good_end_at)
                   FROM job j JOIN job_state s USING (job_no)
                  WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number
                    AND s.last_good_end_at > coalesce(j.target_since, 0))) AS last_success_at,
       (SELECT count(*) FROM job j
         WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number) AS jobs
  FROM target t WHERE t.tenant_no = $1 AND t.number = ANY ($2::int8[]);

-- :name jobs_of_target
SELECT job_no, id FROM job
 WHERE tenant_no = $1 AND target_no = $2 AND job_no > $3
 ORDER BY job_no LIMIT $4;

-- :name list_targets
SELECT t.number, t.source_id, t.name, t.url, t.generation, t.created_at, t.updated_at,
       greatest(t.last_success_at,
                (SELECT max(s.last_good_end_at)
                   FROM job j JOIN job_state s USING (job_no)
                  WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number
                    AND s.last_good_end_at > coalesce(j.target_since, 0))) AS last_success_at,
       (SELECT count(*) FROM job j
         WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number) AS jobs
  FROM target t WHERE t.tenant_no = $1 AND t.number > $2
 ORDER BY t.number LIMIT $3 OFFSET $4;

-- :name list_targets_count
SELECT coalesce((SELECT targets FROM numbering WHERE tenant_no = $1), 0);

-- :name create_target_find
SELECT number FROM target WHERE tenant_no = $1 AND number = $2
 UNION ALL
SELECT number FROM target WHERE tenant_no = $1 AND source_id = $3
 LIMIT 1;

-- :name create_target_free
-- The lowest from $2 on that nobody chose.
SELECT CASE WHEN NOT EXISTS (SELECT FROM target WHERE tenant_no = $1 AND number = $2) THEN $2::int8
       ELSE (SELECT t.number + 1 FROM target t
              WHERE t.tenant_no = $1 AND t.number >= $2
                AND NOT EXISTS (SELECT FROM target n
                                 WHERE n.tenant_no = $1 AND n.number = t.number + 1)
              ORDER BY t.number LIMIT 1) END;

-- :name create_target_number
-- Locks the tenant's numbers: whoever makes a target or registers jobs does this first.
INSERT INTO numbering (tenant_no) VALUES ($1)
    ON CONFLICT (tenant_no) DO UPDATE SET next_target = numbering.next_target
RETURNING next_target;

-- :name stale_targets
SELECT t.tenant_no, t.number, t.created_at,
       greatest(t.last_success_at, past.last_success_at) AS last_success_at, next.job, next.next_at,
       coalesce(past.is_live, false) AS is_live
  FROM (SELECT tenant_no, number, created_at, last_success_at FROM target
         WHERE (tenant_no, number) > ($1, $2) ORDER BY tenant_no, number LIMIT $3) AS t
 CROSS JOIN LATERAL (
       SELECT max(s.last_good_end_at) FILTER (WHERE s.last_good_end_at > coalesce(j.target_since, 0))
              AS last_success_at,
              bool_or(s.live > 0) AS is_live
         FROM job j JOIN job_state s USING (job_no)
        WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number) AS past
 CROSS JOIN LATERAL (
       SELECT (array_agg(j.id ORDER BY j.job_no))[1] AS job, min(s.next_at) AS next_at
         FROM job j JOIN job_state s USING (job_no)
        WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number AND j.state = 0
          AND j.executor <> 'none') AS next
 ORDER BY t.tenant_no, t.number;

-- :name target_urls
SELECT number, url FROM target WHERE tenant_no = $1 AND number = ANY ($2::int8[]);
