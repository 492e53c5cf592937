-- Registering jobs.

-- :name register (
--   now, tenant, id, name, configuration, source_id, about, definition, next_at, slot,
--   follows_end, executor, lane, load_profile, cost_us, cost_stated, target_no, dedup_key
-- )
-- Arrays are unnested in the SELECT list and not in FROM, where each array would be materialized
-- before the first row. This order of unnesting also keeps the order of the jobs, in which they get
-- their numbers, without a sort.
WITH clock AS MATERIALIZED (SELECT {clock} AS now), numbers AS (
    INSERT INTO numbering (tenant_no, next_job) VALUES (:tenant, 1 + cardinality(:id::uuid[]))
        ON CONFLICT (tenant_no)
        DO UPDATE SET next_job = numbering.next_job + cardinality(:id::uuid[])
 RETURNING next_job - cardinality(:id::uuid[]) AS first
), made AS (
    INSERT INTO job (id, tenant_no, name, configuration, source_id, about, definition, created_at,
                     updated_at, executor, lane, number, target_no, dedup_key)
    SELECT d.id, :tenant, d.name, d.configuration, d.source_id, d.about, d.definition,
           (SELECT now FROM clock), (SELECT now FROM clock), d.executor, d.lane,
           (SELECT first FROM numbers) + d.nth - 1, d.target_no, d.dedup_key
      FROM (SELECT unnest(:id::uuid[]) AS id, unnest(:name::text[]) AS name,
                   unnest(:configuration::text[]) AS configuration,
                   unnest(:source_id::text[]) AS source_id,
                   unnest(:about::text[]) AS about, unnest(:definition::text[]) AS definition,
                   unnest(:executor::text[]) AS executor, unnest(:lane::int2[]) AS lane,
                   generate_subscripts(:id::uuid[], 1) AS nth,
                   unnest(:target_no::int8[]) AS target_no,
                   unnest(:dedup_key::uuid[]) AS dedup_key) AS d
        ON CONFLICT (tenant_no, name, configuration) WHERE state <> {job.deleted} DO NOTHING
 RETURNING job_no, id, number
), first_times AS MATERIALIZED (
    SELECT m.job_no, d.next_at, d.slot, d.follows_end, d.load_profile, d.cost_us, d.cost_stated
      FROM made m
      JOIN (SELECT unnest(:id::uuid[]) AS id, unnest(:next_at::int8[]) AS next_at,
                   unnest(:slot::int4[]) AS slot, unnest(:follows_end::bool[]) AS follows_end,
                   unnest(:load_profile::int8[]) AS load_profile,
                   unnest(:cost_us::int8[]) AS cost_us,
                   unnest(:cost_stated::bool[]) AS cost_stated) AS d USING (id)
), placed AS (
    INSERT INTO job_state (job_no, tenant_no, shard, next_at, slot, follows_end, load_profile,
                           cost_us,
                           cost_stated, counted)
    SELECT job_no, :tenant, job_no & 255, next_at, slot, follows_end, load_profile, cost_us,
           cost_stated,
           load_profile <> 0
      FROM first_times
), notified AS (
    INSERT INTO changed_job (shard, job_no)
    SELECT job_no & 255, job_no FROM first_times
     WHERE slot <= (SELECT now FROM clock) / 900000000 + 1
        ON CONFLICT DO NOTHING
), unindexed AS (
    INSERT INTO unindexed_job (tenant_no, jobs)
    SELECT :tenant, array_agg(job_no) FROM made HAVING count(*) > 0
), counted AS (
    UPDATE tenant SET job_count = job_count + (SELECT count(*) FROM made) WHERE tenant_no = :tenant
)
SELECT id, job_no, number FROM made;

-- :name register_find_names (tenant, name, configuration)
SELECT d.nth::int8, j.id
  FROM unnest(:name::text[], :configuration::text[]) WITH ORDINALITY AS d(name, configuration, nth)
  JOIN job j ON j.tenant_no = :tenant AND j.name = d.name AND j.configuration = d.configuration
 WHERE j.state <> {job.deleted};

-- :name register_delete_labels
DELETE FROM job_label WHERE job_no = ANY ($1::int8[])

-- :name register_labels (tenant, key, value, job_no)
INSERT INTO job_label (tenant_no, key, value, job_no)
SELECT :tenant, * FROM unnest(:key::text[], :value::text[], :job_no::int8[])
    ON CONFLICT DO NOTHING

-- :name register_lock_dedup (tenant, key, job_id, now)
-- Inserts free keys and locks existing keys without a change, because the WHERE of the update is
-- never true. Keys are locked in key order, as in all transactions. Returns the new keys.
INSERT INTO dedup_key (tenant_no, key, job_id, taken_at)
SELECT :tenant, d.key, d.job_id,
       {clock}
  FROM unnest(:key::uuid[], :job_id::uuid[]) AS d(key, job_id)
 ORDER BY d.key
    ON CONFLICT (tenant_no, key) DO UPDATE SET taken_at = dedup_key.taken_at WHERE false
RETURNING key;

-- :name register_look_dedup (tenant, keys)
SELECT d.key, d.job_id, d.taken_at, j.state, s.next_at, s.live,
       (j.definition::json -> 'schedule' ->> 'kind') <> 'once' AS recurs,
       s.live > 0 AND (EXISTS (SELECT FROM ready q WHERE q.job_no = j.job_no)
                    OR EXISTS (SELECT FROM delayed_attempt w WHERE w.job_no = j.job_no)) AS waits
  FROM dedup_key d JOIN job j ON j.id = d.job_id JOIN job_state s ON s.job_no = j.job_no
 WHERE d.tenant_no = :tenant AND d.key = ANY (:keys::uuid[]);

-- :name register_take_dedup (tenant, key, job_id, taken_at)
UPDATE dedup_key d SET job_id = t.job_id, taken_at = t.taken_at
  FROM unnest(:key::uuid[], :job_id::uuid[], :taken_at::int8[]) AS t(key, job_id, taken_at)
 WHERE d.tenant_no = :tenant AND d.key = t.key;

-- :name register_details (job_no, executor, lane)
UPDATE job j SET executor = d.executor, lane = d.lane
  FROM unnest(:job_no::int8[], :executor::text[], :lane::int2[]) AS d(job_no, executor, lane)
 WHERE j.job_no = d.job_no
