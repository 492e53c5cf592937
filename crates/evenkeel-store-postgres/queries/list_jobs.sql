-- Lists of jobs: filters, sort orders, totals.
--
-- `{statement_time}` is one moment for the whole statement, so that an index can be searched for it.

-- :fragment statement_time
(extract(epoch FROM statement_timestamp()) * 1000000)::int8

-- :fragment list_jobs_held
j.state = {job.active} AND s.live = 0 AND s.next_at <= {statement_time}
     AND strpos(j.definition, '"blackout_periods"') > 0

-- :fragment list_jobs_status
CASE WHEN j.state = {job.cancelled} THEN {job_status.cancelled}
     WHEN j.state = {job.paused} THEN {job_status.paused}
     WHEN s.live > 0 THEN
          CASE WHEN s.live > (SELECT count(*) FROM ready r WHERE r.job_no = j.job_no)
                           + (SELECT count(*) FROM delayed_attempt w WHERE w.job_no = j.job_no)
               THEN {job_status.running} ELSE {job_status.pending} END
     WHEN {list_jobs_held} THEN 7
     WHEN s.next_at <= {statement_time} THEN {job_status.pending}
     WHEN s.next_at IS NOT NULL THEN {job_status.scheduled}
     WHEN s.last_status IS NULL THEN {job_status.pending}
     WHEN s.last_status IN ({attempts.succeeded}) THEN {job_status.completed}
     WHEN s.last_status IN ({attempts.failed}) THEN {job_status.failed}
     ELSE {job_status.cancelled} END

-- :name list_jobs (jobs)
SELECT {job_columns}
  FROM job j JOIN job_state s USING (job_no)
 WHERE j.job_no = ANY (:jobs::int8[]) AND j.state <> {job.deleted};

-- :name list_jobs_by_created
SELECT job_no FROM job
 WHERE tenant_no = :tenant::int8::int4 AND state <> {job.deleted} AND job_no > :after_no::int8
 ORDER BY job_no ASC LIMIT :limit::int8 OFFSET :offset::int8

-- :name list_jobs_by_label
SELECT job_no FROM job_label
WHERE tenant_no = :tenant::int8::int4 AND key = (:label_keys::text[])[1] AND value = (:label_values::text[])[1] AND job_no > :after_no::int8
ORDER BY job_no ASC LIMIT :limit::int8 OFFSET :offset::int8

-- :name list_jobs_by_name
SELECT job_no FROM job
 WHERE tenant_no = :tenant::int8::int4 AND state <> {job.deleted} AND (name, configuration) >= (:after_name::text, :after_configuration::text)
 ORDER BY name ASC, configuration ASC LIMIT :limit::int8 OFFSET :offset::int8

-- :name list_jobs_by_paused
SELECT job_no FROM job
WHERE tenant_no = :tenant::int8::int4 AND state = {job.paused} AND job_no > :after_no::int8
ORDER BY job_no ASC LIMIT :limit::int8 OFFSET :offset::int8

-- :name list_jobs_by_source
SELECT job_no FROM job
WHERE tenant_no = :tenant::int8::int4 AND state <> {job.deleted} AND source_id IS NOT NULL AND source_id = :source_id AND job_no > :after_no::int8
ORDER BY job_no ASC LIMIT :limit::int8 OFFSET :offset::int8

-- :name list_jobs_by_target
SELECT job_no FROM job
WHERE tenant_no = :tenant::int8::int4 AND target_no IS NOT NULL AND target_no = :target::int8 AND job_no > :after_no::int8
ORDER BY job_no ASC LIMIT :limit::int8 OFFSET :offset::int8

-- :name list_jobs_by_updated
SELECT job_no FROM job
 WHERE tenant_no = :tenant::int8::int4 AND state <> {job.deleted} AND (updated_at, job_no) > (:after_at::int8, :after_no::int8)
 ORDER BY updated_at ASC, job_no ASC LIMIT :limit::int8 OFFSET :offset::int8

-- :name list_jobs_from_all
SELECT job_no FROM job WHERE tenant_no = :tenant::int8::int4 AND state <> {job.deleted} LIMIT 10001

-- :name list_jobs_from_at_risk
SELECT job_no FROM job_condition WHERE tenant_no = :tenant::int8::int4 AND level > {condition.ok} LIMIT 10001

-- :name list_jobs_from_ended
SELECT job_no
  FROM (SELECT job_no FROM job WHERE tenant_no = :tenant::int8::int4 AND state = {job.cancelled}
         UNION ALL
        SELECT job_no FROM job_state WHERE tenant_no = :tenant::int8::int4 AND slot IS NULL AND active) AS e
 LIMIT 10001

-- :name list_jobs_from_label
SELECT job_no FROM job_label
 WHERE tenant_no = :tenant::int8::int4 AND key = (:label_keys::text[])[1] AND value = (:label_values::text[])[1] LIMIT 10001

-- :name list_jobs_from_name
-- Every text with a given prefix sorts before the prefix followed by the last character.
SELECT job_no FROM job
 WHERE tenant_no = :tenant::int8::int4 AND state <> {job.deleted} AND name >= :name_prefix AND name < :name_prefix || U&'\+10FFFF' LIMIT 10001

-- :name list_jobs_from_next_times
SELECT job_no
  FROM (SELECT s.job_no, s.tenant_no
          FROM generate_series(0, 255) AS h(shard)
         CROSS JOIN LATERAL (SELECT job_no, tenant_no FROM job_state
                              WHERE shard = h.shard
                                AND slot BETWEEN coalesce((:next_from::int8 / 900000000)::int4, -2147483648)
                                             AND coalesce((:next_before::int8 / 900000000)::int4, 2147483647)
                              LIMIT 10001) AS s
         LIMIT 10001) AS s
 WHERE tenant_no = :tenant::int8::int4

-- :name list_jobs_from_paused
SELECT job_no FROM job WHERE tenant_no = :tenant::int8::int4 AND state = {job.paused} LIMIT 10001

-- :name list_jobs_from_pending
-- Jobs with pending attempts, due jobs, and jobs without a next run time that never ran. Due jobs
-- are in the current time slot and in earlier slots. A time slot of a large store holds many jobs
-- that are not due yet, so more rows are scanned there.
SELECT job_no FROM (SELECT job_no, tenant_no FROM ready LIMIT 10001) AS r WHERE tenant_no = :tenant::int8::int4
 UNION
SELECT job_no FROM (SELECT job_no, tenant_no FROM delayed_attempt LIMIT 10001) AS w WHERE tenant_no = :tenant::int8::int4
 UNION
SELECT job_no FROM (SELECT job_no FROM job_state
                     WHERE tenant_no = :tenant::int8::int4 AND slot IS NULL AND active LIMIT 10001) AS s
 UNION
SELECT job_no
  FROM (SELECT job_no
          FROM (SELECT s.job_no, s.tenant_no, s.live, s.next_at
                  FROM generate_series(0, 255) AS h(shard)
                 CROSS JOIN LATERAL (SELECT job_no, tenant_no, live, next_at FROM job_state
                                      WHERE shard = h.shard AND slot <= ({statement_time} / 900000000)::int4
                                      LIMIT 100001) AS s
                 LIMIT 100001) AS s
         WHERE tenant_no = :tenant::int8::int4 AND live = 0 AND next_at <= {statement_time} LIMIT 10001) AS d

-- :name list_jobs_from_running
-- Attempts of all tenants from the lowest low watermark on, newest first, and long-running
-- attempts. If there are more attempts than the limit, the caller cannot use this index.
SELECT DISTINCT r.job_no
  FROM (SELECT * FROM (SELECT job_no, tenant_no, status FROM attempt
                        WHERE scheduled_at >= (SELECT min(low_watermark) FROM node WHERE state <> {node.gone})
                        ORDER BY scheduled_at DESC LIMIT 10001) AS newest
         UNION ALL
        SELECT r.job_no, r.tenant_no, r.status
          FROM long_attempt l
         CROSS JOIN LATERAL (SELECT job_no, tenant_no, status FROM attempt r
                              WHERE r.scheduled_at = l.scheduled_at AND r.job_no = l.job_no
                                AND r.sequence = l.sequence AND r.attempt = l.attempt LIMIT 1) AS r) AS r
 WHERE r.tenant_no = :tenant::int8::int4 AND r.status = {attempt.running}

-- :name list_jobs_from_search
-- A union with the newest jobs that are not in the index yet. Only the newest entries of all tenants
-- are read, because there may be many during a bulk import. The index is read in a WITH query
-- without a limit: with a limit, the planner would expect to find the jobs soon in a scan of the
-- whole table. An operator with a schema is never that of an extension, which the index lacks.
(WITH found AS MATERIALIZED (
     SELECT job_no FROM job_grams WHERE grams OPERATOR(pg_catalog.@>) :search_grams::int4[])
 SELECT job_no FROM found LIMIT 10001)
 UNION
(SELECT n.job_no
   FROM (SELECT tenant_no, jobs FROM unindexed_job ORDER BY entry_no DESC LIMIT 1000) AS u
  CROSS JOIN LATERAL unnest(u.jobs) AS n(job_no)
  WHERE u.tenant_no = :tenant::int8::int4 LIMIT 1000)

-- :name list_jobs_from_source
SELECT job_no FROM job WHERE tenant_no = :tenant::int8::int4 AND state <> {job.deleted} AND source_id = :source_id LIMIT 10001

-- :name list_jobs_from_source_prefix
SELECT job_no FROM job
 WHERE tenant_no = :tenant::int8::int4 AND state <> {job.deleted} AND source_id IS NOT NULL
   AND source_id >= :source_prefix AND source_id < :source_prefix || U&'\+10FFFF' LIMIT 10001

-- :name list_jobs_from_target
SELECT job_no FROM job WHERE tenant_no = :tenant::int8::int4 AND target_no = :target::int8 LIMIT 10001

-- :name list_jobs_from_waiting
SELECT job_no FROM (SELECT job_no, tenant_no FROM ready LIMIT 10001) AS r WHERE tenant_no = :tenant::int8::int4
 UNION
SELECT job_no FROM (SELECT job_no, tenant_no FROM delayed_attempt LIMIT 10001) AS w WHERE tenant_no = :tenant::int8::int4

-- :name list_jobs_in_slot
-- `shard` is one shard, or NULL for all shards.
SELECT s.job_no
  FROM generate_series(coalesce(:shard::int8::int4, 0), coalesce(:shard::int8::int4, 255)) AS h(shard)
 CROSS JOIN LATERAL (SELECT job_no, tenant_no FROM job_state
                      WHERE shard = h.shard AND slot = :slot::int8::int4) AS s
 WHERE s.tenant_no = :tenant::int8::int4

-- :name list_jobs_name_of (tenant, job)
SELECT name, configuration FROM job WHERE tenant_no = :tenant AND job_no = :job AND name IS NOT NULL

-- :name list_jobs_next_slot (slot)
SELECT min(s.slot)
  FROM generate_series(0, 255) AS h(shard)
 CROSS JOIN LATERAL (SELECT slot FROM job_state WHERE shard = h.shard AND slot >= :slot::int4
                      ORDER BY slot LIMIT 1) AS s

-- :name list_jobs_next_slot_back (slot)
SELECT max(s.slot)
  FROM generate_series(0, 255) AS h(shard)
 CROSS JOIN LATERAL (SELECT slot FROM job_state WHERE shard = h.shard AND slot <= :slot::int4
                      ORDER BY slot DESC LIMIT 1) AS s

-- :name list_jobs_passes
-- Returns whether the jobs of `c` pass the filter. Statuses are numbered as in JobStatus::ALL.
-- LIMIT 1 makes the planner look each job up by its number. Status 7 is a due job with blackouts;
-- the program decides from the three columns after `passes` whether the job is pending or scheduled.
-- For a search, the program checks the text of the last two columns.
SELECT j.job_no, j.updated_at, s.next_at, CASE WHEN :sort_by::int8::int2 = 2 THEN j.name END,
       CASE WHEN :sort_by::int8::int2 = 2 THEN j.configuration END,
       (:name_prefix::text IS NULL OR starts_with(j.name, :name_prefix))
   AND (:source_id::text IS NULL OR j.source_id = :source_id)
   AND (:source_prefix::text IS NULL OR starts_with(j.source_id, :source_prefix))
   AND (:status::int8::int2 IS NULL OR CASE {list_jobs_status} WHEN :status THEN true WHEN 7 THEN :status IN (0, 1) ELSE false END)
   AND (:condition::int8::int2 IS NULL
        OR :condition = coalesce((SELECT level FROM job_condition v WHERE v.job_no = j.job_no), 0))
   AND (:executor::text IS NULL OR j.executor = :executor)
   AND (:lane::int8::int2 IS NULL OR j.lane = :lane)
   AND NOT EXISTS (SELECT FROM unnest(:label_keys::text[], :label_values::text[]) AS l(key, value)
                    WHERE NOT EXISTS (SELECT FROM job_label b
                                       WHERE b.job_no = j.job_no AND b.key = l.key
                                         AND b.value = l.value))
   AND (:next_from::int8 IS NULL OR s.next_at >= :next_from)
   AND (:next_before::int8 IS NULL OR s.next_at < :next_before)
   AND (:target::int8 IS NULL OR j.target_no = :target)
   AND (:active_attempts::int8::int2 IS NULL
        OR s.live > 0 AND (:active_attempts = 1) =
           (s.live > (SELECT count(*) FROM ready r WHERE r.job_no = j.job_no)
                   + (SELECT count(*) FROM delayed_attempt w WHERE w.job_no = j.job_no)))
   AND (:sort_by::int8::int2 <> 2 OR j.name IS NOT NULL)
   AND (:sort_by::int8::int2 <> 3 OR s.next_at IS NOT NULL) AS passes,
       CASE WHEN :status::int8::int2 IN (0, 1) AND {list_jobs_held} THEN j.definition END, s.average_us, {statement_time},
       CASE WHEN :search::int8 IS NOT NULL THEN j.about END,
       CASE WHEN :search::int8 IS NOT NULL THEN (SELECT t.name FROM target t WHERE t.tenant_no = j.tenant_no AND t.number = j.target_no) END
  FROM c
 CROSS JOIN LATERAL (SELECT * FROM job WHERE job.job_no = c.job_no LIMIT 1) AS j
 CROSS JOIN LATERAL (SELECT * FROM job_state WHERE job_state.job_no = c.job_no LIMIT 1) AS s
 WHERE j.tenant_no = :tenant::int8::int4 AND j.state <> {job.deleted}

-- :name list_jobs_scanned_next_times
SELECT count(*)
  FROM (SELECT
          FROM generate_series(0, 255) AS h(shard)
         CROSS JOIN LATERAL (SELECT FROM job_state
                              WHERE shard = h.shard
                                AND slot BETWEEN coalesce((:next_from::int8 / 900000000)::int4, -2147483648)
                                             AND coalesce((:next_before::int8 / 900000000)::int4, 2147483647)
                              LIMIT 10001) AS s
         LIMIT 10001) AS s

-- :name list_jobs_scanned_pending
-- If the time slot has too many rows to scan, the number of due jobs is unknown, which counts as
-- too many.
SELECT greatest((SELECT count(*) FROM (SELECT FROM ready LIMIT 10001) AS r),
                (SELECT count(*) FROM (SELECT FROM delayed_attempt LIMIT 10001) AS w),
                (SELECT count(*) FROM (SELECT FROM job_state
                                        WHERE tenant_no = :tenant::int8::int4 AND slot IS NULL AND active
                                        LIMIT 10001) AS s),
                (SELECT CASE WHEN count(*) > 100000 THEN 10001
                             ELSE count(*) FILTER (WHERE tenant_no = :tenant::int8::int4 AND live = 0
                                                     AND next_at <= {statement_time}) END
                   FROM (SELECT s.tenant_no, s.live, s.next_at
                  FROM generate_series(0, 255) AS h(shard)
                 CROSS JOIN LATERAL (SELECT tenant_no, live, next_at FROM job_state
                                      WHERE shard = h.shard AND slot <= ({statement_time} / 900000000)::int4
                                      LIMIT 100001) AS s
                 LIMIT 100001) AS s))

-- :name list_jobs_scanned_running
SELECT count(*)
  FROM (SELECT FROM attempt WHERE scheduled_at >= (SELECT min(low_watermark) FROM node WHERE state <> {node.gone})
         ORDER BY scheduled_at DESC LIMIT 10001) AS r

-- :name list_jobs_scanned_waiting
SELECT greatest((SELECT count(*) FROM (SELECT FROM ready LIMIT 10001) AS r),
                (SELECT count(*) FROM (SELECT FROM delayed_attempt LIMIT 10001) AS w))

-- :name list_jobs_slot_size (slot, shard)
SELECT count(*)
  FROM (SELECT
          FROM generate_series(coalesce(:shard::int4, 0), coalesce(:shard::int4, 255)) AS h(shard)
         CROSS JOIN LATERAL (SELECT FROM job_state WHERE shard = h.shard AND slot = :slot::int4
                              LIMIT 10001) AS s
         LIMIT 10001) AS s

-- :name list_jobs_total (tenant)
SELECT job_count FROM tenant WHERE tenant_no = :tenant;
