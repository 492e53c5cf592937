-- Lists of jobs: filters, sort orders, totals.

-- :fragment list_jobs_held
j.state = {job.active} AND s.live = 0 AND s.next_at <= :now
     AND instr(j.definition, '"blackout_periods"') > 0

-- :fragment list_jobs_is_paused
-- SQLite uses the partial index `job_stopped` only if the statement repeats its condition.
state = {job.paused} AND state IN ({jobs.stopped})

-- :fragment list_jobs_status
CASE WHEN j.state = {job.cancelled} THEN {job_status.cancelled}
     WHEN j.state = {job.paused} THEN {job_status.paused}
     WHEN s.live > 0 THEN iif(s.live > (SELECT count(*) FROM ready r WHERE r.job_no = j.job_no)
                                     + (SELECT count(*) FROM delayed_attempt w WHERE w.job_no = j.job_no),
                              {job_status.running}, {job_status.pending})
     WHEN {list_jobs_held} THEN 7
     WHEN s.next_at <= :now THEN {job_status.pending}
     WHEN s.next_at IS NOT NULL THEN {job_status.scheduled}
     WHEN s.last_status IS NULL THEN {job_status.pending}
     WHEN s.last_status IN ({attempts.succeeded}) THEN {job_status.completed}
     WHEN s.last_status IN ({attempts.failed}) THEN {job_status.failed}
     ELSE {job_status.cancelled} END

-- :name list_jobs (job)
{job_row}
WHERE j.job_no = :job AND j.state <> {job.deleted}

-- :name list_jobs_by_created
SELECT job_no FROM job
WHERE tenant_no = :tenant AND state <> {job.deleted} AND job_no > :after_no
ORDER BY job_no ASC LIMIT :limit OFFSET :offset

-- :name list_jobs_by_label
SELECT job_no FROM job_label
WHERE tenant_no = :tenant AND key = :labels ->> '$[0][0]' AND value = :labels ->> '$[0][1]' AND job_no > :after_no
ORDER BY job_no ASC LIMIT :limit OFFSET :offset

-- :name list_jobs_by_name
SELECT job_no FROM job
WHERE tenant_no = :tenant AND state <> {job.deleted} AND (name, configuration) >= (:after_name, :after_configuration)
ORDER BY name ASC, configuration ASC LIMIT :limit OFFSET :offset

-- :name list_jobs_by_paused
SELECT job_no FROM job
WHERE tenant_no = :tenant AND {list_jobs_is_paused} AND job_no > :after_no
ORDER BY job_no ASC LIMIT :limit OFFSET :offset

-- :name list_jobs_by_source
SELECT job_no FROM job
WHERE tenant_no = :tenant AND state <> {job.deleted} AND source_id IS NOT NULL AND source_id = :source_id AND job_no > :after_no
ORDER BY job_no ASC LIMIT :limit OFFSET :offset

-- :name list_jobs_by_target
SELECT job_no FROM job
WHERE tenant_no = :tenant AND target_no IS NOT NULL AND target_no = :target AND job_no > :after_no
ORDER BY job_no ASC LIMIT :limit OFFSET :offset

-- :name list_jobs_by_updated
SELECT job_no FROM job
WHERE tenant_no = :tenant AND state <> {job.deleted} AND (updated_at, job_no) > (:after_at, :after_no)
ORDER BY updated_at ASC, job_no ASC LIMIT :limit OFFSET :offset

-- :name list_jobs_from_all
SELECT job_no FROM job WHERE tenant_no = :tenant AND state <> {job.deleted} LIMIT 10001

-- :name list_jobs_from_at_risk
SELECT job_no FROM job_condition WHERE tenant_no = :tenant AND level > {condition.ok} LIMIT 10001

-- :name list_jobs_from_ended
SELECT job_no FROM (
    SELECT job_no FROM job
    WHERE tenant_no = :tenant AND state = {job.cancelled} AND state IN ({jobs.stopped})
    UNION ALL
    SELECT job_no FROM job_state WHERE tenant_no = :tenant AND slot IS NULL AND active = 1)
LIMIT 10001

-- :name list_jobs_from_label
SELECT job_no FROM job_label
WHERE tenant_no = :tenant AND key = :labels ->> '$[0][0]' AND value = :labels ->> '$[0][1]' LIMIT 10001

-- :name list_jobs_from_name
-- Every text with a given prefix sorts before the prefix followed by the last Unicode character.
SELECT job_no FROM job
WHERE tenant_no = :tenant AND state <> {job.deleted} AND name >= :name_prefix AND name < :name_prefix || char(1114111) LIMIT 10001

-- :name list_jobs_from_next_times
SELECT job_no FROM (
    WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
    SELECT s.job_no, s.tenant_no
    FROM shard CROSS JOIN job_state s
      ON s.shard = shard.no AND s.slot BETWEEN coalesce(:next_from / 900000000, -2147483648)
                                           AND coalesce(:next_before / 900000000, 2147483647)
    LIMIT 10001)
WHERE tenant_no = :tenant

-- :name list_jobs_from_paused
SELECT job_no FROM job WHERE tenant_no = :tenant AND {list_jobs_is_paused} LIMIT 10001

-- :name list_jobs_from_pending
-- Jobs that have waiting attempts, jobs that are due by `now`, and jobs without a next run time
-- that never ran. Due jobs are in the current time slot or in earlier slots. A time slot of a large
-- store also holds many jobs that are not due yet, so more of these rows are read than of the other
-- kinds.
SELECT job_no FROM (SELECT job_no, tenant_no FROM ready LIMIT 10001) WHERE tenant_no = :tenant
UNION
SELECT job_no FROM (SELECT job_no, tenant_no FROM delayed_attempt LIMIT 10001) WHERE tenant_no = :tenant
UNION
SELECT job_no FROM (
    SELECT job_no FROM job_state WHERE tenant_no = :tenant AND slot IS NULL AND active = 1 LIMIT 10001)
UNION
SELECT job_no FROM (
    SELECT job_no FROM (
        WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
        SELECT s.job_no, s.tenant_no, s.live, s.next_at
        FROM shard CROSS JOIN job_state s
          ON s.shard = shard.no AND s.slot <= :now / 900000000
        LIMIT 100001)
    WHERE tenant_no = :tenant AND live = 0 AND next_at <= :now LIMIT 10001)

-- :name list_jobs_from_running
-- The newest attempts of all tenants down to the lowest low watermark, and the long-running
-- attempts. If there are too many of the newest attempts to read, the caller does not use the
-- result.
SELECT DISTINCT job_no FROM (
    SELECT job_no, tenant_no, status FROM (
        SELECT job_no, tenant_no, status FROM attempt
        WHERE scheduled_at >= (SELECT min(low_watermark) FROM node WHERE state <> {node.gone})
        ORDER BY scheduled_at DESC LIMIT 10001)
    UNION ALL
    SELECT r.job_no, r.tenant_no, r.status
    FROM long_attempt l CROSS JOIN attempt r ON r.scheduled_at = l.scheduled_at AND r.job_no = l.job_no
                                    AND r.sequence = l.sequence AND r.attempt = l.attempt)
WHERE tenant_no = :tenant AND status = {attempt.running}

-- :name list_jobs_from_search
-- A union with the newest jobs that are not in the index yet. Only the newest entries of all tenants
-- are read, because there may be many during a bulk import.
SELECT job_no FROM (SELECT rowid AS job_no FROM job_grams WHERE job_grams MATCH :search_grams LIMIT 10001)
UNION
SELECT job_no FROM (
    SELECT n.value AS job_no
    FROM (SELECT tenant_no, jobs FROM unindexed_job ORDER BY entry_no DESC LIMIT 1000) AS u
         CROSS JOIN json_each(u.jobs) AS n
    WHERE u.tenant_no = :tenant LIMIT 1000)

-- :name list_jobs_from_source
SELECT job_no FROM job
WHERE tenant_no = :tenant AND state <> {job.deleted} AND source_id = :source_id AND source_id IS NOT NULL LIMIT 10001

-- :name list_jobs_from_source_prefix
SELECT job_no FROM job
WHERE tenant_no = :tenant AND state <> {job.deleted} AND source_id IS NOT NULL
  AND source_id >= :source_prefix AND source_id < :source_prefix || char(1114111) LIMIT 10001

-- :name list_jobs_from_target
SELECT job_no FROM job WHERE tenant_no = :tenant AND target_no = :target AND target_no IS NOT NULL LIMIT 10001

-- :name list_jobs_from_waiting
SELECT job_no FROM (SELECT job_no, tenant_no FROM ready LIMIT 10001) WHERE tenant_no = :tenant
UNION
SELECT job_no FROM (SELECT job_no, tenant_no FROM delayed_attempt LIMIT 10001) WHERE tenant_no = :tenant

-- :name list_jobs_in_slot
-- The parameter `shard` is one shard, or NULL for all shards.
WITH RECURSIVE shard (no) AS (
    SELECT coalesce(:shard, 0) UNION ALL SELECT no + 1 FROM shard WHERE :shard IS NULL AND no < 255)
SELECT s.job_no FROM shard CROSS JOIN job_state s ON s.shard = shard.no AND s.slot = :slot
WHERE s.tenant_no = :tenant

-- :name list_jobs_name_of (tenant, job)
SELECT name, configuration FROM job WHERE tenant_no = :tenant AND job_no = :job AND name IS NOT NULL

-- :name list_jobs_next_slot (slot)
WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
SELECT min((SELECT min(slot) FROM job_state s WHERE s.shard = shard.no AND s.slot >= :slot)) FROM shard

-- :name list_jobs_next_slot_back (slot)
WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
SELECT max((SELECT max(slot) FROM job_state s WHERE s.shard = shard.no AND s.slot <= :slot)) FROM shard

-- :name list_jobs_passes
-- Returns whether each job of `c` passes the filter. Status 7 is a due job with blackouts; from
-- `held` and `average_us` the caller decides whether it is pending or scheduled. All other statuses
-- have their usual codes. For a search, the caller checks the text of `about` and `target_name`.
SELECT j.job_no, j.updated_at, s.next_at, j.name, j.configuration,
       (:name_prefix IS NULL OR substr(j.name, 1, length(:name_prefix)) = :name_prefix)
   AND (:source_id IS NULL OR j.source_id = :source_id)
   AND (:source_prefix IS NULL OR substr(j.source_id, 1, length(:source_prefix)) = :source_prefix)
   AND (:status IS NULL OR CASE {list_jobs_status} WHEN :status THEN 1 WHEN 7 THEN :status IN ({job_status.pending}, {job_status.scheduled}) ELSE 0 END)
   AND (:condition IS NULL OR :condition = coalesce((SELECT level FROM job_condition v WHERE v.job_no = j.job_no), 0))
   AND (:executor IS NULL OR j.executor = :executor)
   AND (:lane IS NULL OR j.lane = :lane)
   AND (:labels IS NULL OR NOT EXISTS (
            SELECT 1 FROM json_each(:labels) l
            WHERE NOT EXISTS (SELECT 1 FROM job_label b
                              WHERE b.job_no = j.job_no AND b.key = l.value ->> 0
                                AND b.value = l.value ->> 1)))
   AND (:next_from IS NULL OR s.next_at >= :next_from)
   AND (:next_before IS NULL OR s.next_at < :next_before)
   AND (:target IS NULL OR j.target_no = :target)
   AND (:active_attempts IS NULL
        OR s.live > 0 AND (:active_attempts = 1) =
           (s.live > (SELECT count(*) FROM ready r WHERE r.job_no = j.job_no)
                   + (SELECT count(*) FROM delayed_attempt w WHERE w.job_no = j.job_no)))
   AND (:sort_by <> 2 OR j.name IS NOT NULL)
   AND (:sort_by <> 3 OR s.next_at IS NOT NULL) AS passes,
       CASE WHEN :status IN ({job_status.pending}, {job_status.scheduled}) AND {list_jobs_held} THEN j.definition END AS held, s.average_us,
       iif(:search IS NULL, NULL, j.about) AS about,
       iif(:search IS NULL, NULL, (SELECT t.name FROM target t WHERE t.tenant_no = j.tenant_no AND t.number = j.target_no)) AS target_name
FROM c CROSS JOIN job j ON j.job_no = c.job_no CROSS JOIN job_state s ON s.job_no = c.job_no
WHERE j.tenant_no = :tenant AND j.state <> {job.deleted}

-- :name list_jobs_scanned_next_times
SELECT count(*) FROM (
    WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
    SELECT 1
    FROM shard CROSS JOIN job_state s
      ON s.shard = shard.no AND s.slot BETWEEN coalesce(:next_from / 900000000, -2147483648)
                                           AND coalesce(:next_before / 900000000, 2147483647)
    LIMIT 10001)

-- :name list_jobs_scanned_pending
-- If the current time slot has too many jobs to read, the number of due jobs is unknown and counts
-- as too many.
SELECT max((SELECT count(*) FROM (SELECT 1 FROM ready LIMIT 10001)),
           (SELECT count(*) FROM (SELECT 1 FROM delayed_attempt LIMIT 10001)),
           (SELECT count(*) FROM (SELECT 1 FROM job_state
                                  WHERE tenant_no = :tenant AND slot IS NULL AND active = 1
                                  LIMIT 10001)),
           (SELECT iif(count(*) > 100000, 10001,
                       count(*) FILTER (WHERE tenant_no = :tenant AND live = 0 AND next_at <= :now))
            FROM (
                WITH RECURSIVE shard (no) AS (
                    SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
                SELECT s.tenant_no, s.live, s.next_at
                FROM shard CROSS JOIN job_state s
                  ON s.shard = shard.no AND s.slot <= :now / 900000000
                LIMIT 100001)))

-- :name list_jobs_scanned_running
SELECT count(*) FROM (
    SELECT 1 FROM attempt WHERE scheduled_at >= (SELECT min(low_watermark) FROM node WHERE state <> {node.gone})
    LIMIT 10001)

-- :name list_jobs_scanned_waiting
SELECT max((SELECT count(*) FROM (SELECT 1 FROM ready LIMIT 10001)),
           (SELECT count(*) FROM (SELECT 1 FROM delayed_attempt LIMIT 10001)))

-- :name list_jobs_slot_size (slot, shard)
WITH RECURSIVE shard (no) AS (
    SELECT coalesce(:shard, 0) UNION ALL SELECT no + 1 FROM shard WHERE :shard IS NULL AND no < 255)
SELECT count(*) FROM (
    SELECT 1 FROM shard CROSS JOIN job_state s ON s.shard = shard.no AND s.slot = :slot LIMIT 10001)

-- :name list_jobs_total (tenant)
SELECT job_count FROM tenant WHERE tenant_no = :tenant
