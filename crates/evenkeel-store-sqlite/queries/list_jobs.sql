-- Lists of jobs: filters, sort orders, totals.

-- :name list_jobs
SELECT j.job_no, j.id, j.tenant_no, j.about, j.definition, j.state, j.created_at, j.updated_at,
       s.generation, s.next_at, s.last_fired_at, s.live, s.executions, s.last_status, s.failures,
       s.last_start_at, s.last_end_at, s.last_good_start_at, s.last_good_end_at,
       s.average_us, s.variance, coalesce(s.placed_at, j.created_at) AS since, s.fired,
       s.head_at, s.head_sequence, s.stopped_at, s.succeeded_runs, s.failed_runs, s.failed_at,
       j.number, j.target_no, j.note,
       (SELECT count(*) FROM ready r WHERE r.job_no = j.job_no)
           + (SELECT count(*) FROM delayed_attempt w WHERE w.job_no = j.job_no) AS waiting
FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.job_no = ?1 AND j.state <> 3

-- :name list_jobs_by_created
SELECT job_no FROM job
WHERE tenant_no = ?1 AND state <> 3 AND job_no > ?16
ORDER BY job_no ASC LIMIT ?19 OFFSET ?20

-- :name list_jobs_by_label
SELECT job_no FROM job_label
WHERE tenant_no = ?1 AND key = ?9 ->> '$[0][0]' AND value = ?9 ->> '$[0][1]' AND job_no > ?16
ORDER BY job_no ASC LIMIT ?19 OFFSET ?20

-- :name list_jobs_by_name
SELECT job_no FROM job
WHERE tenant_no = ?1 AND state <> 3 AND (name, configuration) >= (?17, ?18)
ORDER BY name ASC, configuration ASC LIMIT ?19 OFFSET ?20

-- :name list_jobs_by_paused
SELECT job_no FROM job
WHERE tenant_no = ?1 AND state = 1 AND job_no > ?16
ORDER BY job_no ASC LIMIT ?19 OFFSET ?20

-- :name list_jobs_by_source
SELECT job_no FROM job
WHERE tenant_no = ?1 AND state <> 3 AND source_id IS NOT NULL AND source_id = ?3 AND job_no > ?16
ORDER BY job_no ASC LIMIT ?19 OFFSET ?20

-- :name list_jobs_by_target
SELECT job_no FROM job
WHERE tenant_no = ?1 AND target_no IS NOT NULL AND target_no = ?13 AND job_no > ?16
ORDER BY job_no ASC LIMIT ?19 OFFSET ?20

-- :name list_jobs_by_updated
SELECT job_no FROM job
WHERE tenant_no = ?1 AND state <> 3 AND (updated_at, job_no) > (?15, ?16)
ORDER BY updated_at ASC, job_no ASC LIMIT ?19 OFFSET ?20

-- :name list_jobs_from_all
SELECT job_no FROM job WHERE tenant_no = ?1 AND state <> 3 LIMIT 10001

-- :name list_jobs_from_at_risk
SELECT job_no FROM job_condition WHERE tenant_no = ?1 AND level > 0 LIMIT 10001

-- :name list_jobs_from_ended
SELECT job_no FROM (
    SELECT job_no FROM job WHERE tenant_no = ?1 AND state = 2
    UNION ALL
    SELECT job_no FROM job_state WHERE tenant_no = ?1 AND slot IS NULL AND active = 1)
LIMIT 10001

-- :name list_jobs_from_label
SELECT job_no FROM job_label
WHERE tenant_no = ?1 AND key = ?9 ->> '$[0][0]' AND value = ?9 ->> '$[0][1]' LIMIT 10001

-- :name list_jobs_from_name
-- No text is above its prefix followed by the last character there is.
SELECT job_no FROM job
WHERE tenant_no = ?1 AND state <> 3 AND name >= ?2 AND name < ?2 || char(1114111) LIMIT 10001

-- :name list_jobs_from_next_times
SELECT job_no FROM (
    WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
    SELECT s.job_no, s.tenant_no
    FROM shard CROSS JOIN job_state s
      ON s.shard = shard.no AND s.slot BETWEEN coalesce(?10 / 900000000, -2147483648)
                                           AND coalesce(?11 / 900000000, 2147483647)
    LIMIT 10001)
WHERE tenant_no = ?1

-- :name list_jobs_from_paused
SELECT job_no FROM job WHERE tenant_no = ?1 AND state = 1 LIMIT 10001

-- :name list_jobs_from_pending
-- What waits, what is due by now (?21), and what has no time and never ran. The due ones are among those
-- of this slot and the slots before it: a slot of a large store holds many that are not due yet, so more
-- of them are looked at than of the others.
SELECT job_no FROM (SELECT job_no, tenant_no FROM ready LIMIT 10001) WHERE tenant_no = ?1
UNION
SELECT job_no FROM (SELECT job_no, tenant_no FROM delayed_attempt LIMIT 10001) WHERE tenant_no = ?1
UNION
SELECT job_no FROM (
    SELECT job_no FROM job_state WHERE tenant_no = ?1 AND slot IS NULL AND active = 1 LIMIT 10001)
UNION
SELECT job_no FROM (
    SELECT job_no FROM (
        WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
        SELECT s.job_no, s.tenant_no, s.live, s.next_at
        FROM shard CROSS JOIN job_state s
          ON s.shard = shard.no AND s.slot <= ?21 / 900000000
        LIMIT 100001)
    WHERE tenant_no = ?1 AND live = 0 AND next_at <= ?21 LIMIT 10001)

-- :name list_jobs_from_running
-- The newest runs of all tenants from where the oldest open one may be, and those that run for
-- long. If the first are too many to look at, so is the whole.
SELECT DISTINCT job_no FROM (
    SELECT job_no, tenant_no, status FROM (
        SELECT job_no, tenant_no, status FROM attempt
        WHERE scheduled_at >= (SELECT min(low_watermark) FROM node WHERE state <> 3)
        ORDER BY scheduled_at DESC LIMIT 10001)
    UNION ALL
    SELECT r.job_no, r.tenant_no, r.status
    FROM long_attempt l CROSS JOIN attempt r ON r.scheduled_at = l.scheduled_at AND r.job_no = l.job_no
                                    AND r.sequence = l.sequence AND r.attempt = l.attempt)
WHERE tenant_no = ?1 AND status = 1

-- :name list_jobs_from_source
SELECT job_no FROM job
WHERE tenant_no = ?1 AND state <> 3 AND source_id = ?3 AND source_id IS NOT NULL LIMIT 10001

-- :name list_jobs_from_source_prefix
SELECT job_no FROM job
WHERE tenant_no = ?1 AND state <> 3 AND source_id IS NOT NULL
  AND source_id >= ?4 AND source_id < ?4 || char(1114111) LIMIT 10001

-- :name list_jobs_from_target
SELECT job_no FROM job WHERE tenant_no = ?1 AND target_no = ?13 AND target_no IS NOT NULL LIMIT 10001

-- :name list_jobs_from_waiting
SELECT job_no FROM (SELECT job_no, tenant_no FROM ready LIMIT 10001) WHERE tenant_no = ?1
UNION
SELECT job_no FROM (SELECT job_no, tenant_no FROM delayed_attempt LIMIT 10001) WHERE tenant_no = ?1

-- :name list_jobs_held
j.state = 0 AND s.live = 0 AND s.next_at <= ?21
     AND instr(j.definition, '"blackout_periods"') > 0

-- :name list_jobs_in_slot
-- ?17 is one shard, or NULL for all.
WITH RECURSIVE shard (no) AS (
    SELECT coalesce(?17, 0) UNION ALL SELECT no + 1 FROM shard WHERE ?17 IS NULL AND no < 255)
SELECT s.job_no FROM shard CROSS JOIN job_state s ON s.shard = shard.no AND s.slot = ?16
WHERE s.tenant_no = ?1

-- :name list_jobs_looked_next_times
SELECT count(*) FROM (
    WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
    SELECT 1
    FROM shard CROSS JOIN job_state s
      ON s.shard = shard.no AND s.slot BETWEEN coalesce(?10 / 900000000, -2147483648)
                                           AND coalesce(?11 / 900000000, 2147483647)
    LIMIT 10001)

-- :name list_jobs_looked_pending
-- If not all of this slot can be looked at, nobody knows how many of them are due: too many.
SELECT max((SELECT count(*) FROM (SELECT 1 FROM ready LIMIT 10001)),
           (SELECT count(*) FROM (SELECT 1 FROM delayed_attempt LIMIT 10001)),
           (SELECT count(*) FROM (SELECT 1 FROM job_state
                                  WHERE tenant_no = ?1 AND slot IS NULL AND active = 1
                                  LIMIT 10001)),
           (SELECT iif(count(*) > 100000, 10001,
                       count(*) FILTER (WHERE tenant_no = ?1 AND live = 0 AND next_at <= ?21))
            FROM (
                WITH RECURSIVE shard (no) AS (
                    SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
                SELECT s.tenant_no, s.live, s.next_at
                FROM shard CROSS JOIN job_state s
                  ON s.shard = shard.no AND s.slot <= ?21 / 900000000
                LIMIT 100001)))

-- :name list_jobs_looked_running
SELECT count(*) FROM (
    SELECT 1 FROM attempt WHERE scheduled_at >= (SELECT min(low_watermark) FROM node WHERE state <> 3)
    LIMIT 10001)

-- :name list_jobs_looked_waiting
SELECT max((SELECT count(*) FROM (SELECT 1 FROM ready LIMIT 10001)),
           (SELECT count(*) FROM (SELECT 1 FROM delayed_attempt LIMIT 10001)))

-- :name list_jobs_name_of
SELECT name, configuration FROM job WHERE tenant_no = ?1 AND job_no = ?2 AND name IS NOT NULL

-- :name list_jobs_next_slot
WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
SELECT min((SELECT min(slot) FROM job_state s WHERE s.shard = shard.no AND s.slot >= ?1)) FROM shard

-- :name list_jobs_next_slot_back
WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
SELECT max((SELECT max(slot) FROM job_state s WHERE s.shard = shard.no AND s.slot <= ?1)) FROM shard

-- :name list_jobs_passes
-- Does job `c.job_no` pass the filter? The states are numbered as in JobStatus::ALL; ?21 is now. A due
-- job with blackouts (7) is pending or scheduled: who asks decides, from `held` and `average_us`.
SELECT j.job_no, j.updated_at, s.next_at, j.name, j.configuration,
       (?2 IS NULL OR substr(j.name, 1, length(?2)) = ?2)
   AND (?3 IS NULL OR j.source_id = ?3)
   AND (?4 IS NULL OR substr(j.source_id, 1, length(?4)) = ?4)
   AND (?5 IS NULL OR CASE {status} WHEN ?5 THEN 1 WHEN 7 THEN ?5 IN (0, 1) ELSE 0 END)
   AND (?6 IS NULL OR ?6 = coalesce((SELECT level FROM job_condition v WHERE v.job_no = j.job_no), 0))
   AND (?7 IS NULL OR j.executor = ?7)
   AND (?8 IS NULL OR j.lane = ?8)
   AND (?9 IS NULL OR NOT EXISTS (
            SELECT 1 FROM json_each(?9) l
            WHERE NOT EXISTS (SELECT 1 FROM job_label b
                              WHERE b.job_no = j.job_no AND b.key = l.value ->> 0
                                AND b.value = l.value ->> 1)))
   AND (?10 IS NULL OR s.next_at >= ?10)
   AND (?11 IS NULL OR s.next_at < ?11)
   AND (?13 IS NULL OR j.target_no = ?13)
   AND (?14 IS NULL
        OR s.live > 0 AND (?14 = 1) =
           (s.live > (SELECT count(*) FROM ready r WHERE r.job_no = j.job_no)
                   + (SELECT count(*) FROM delayed_attempt w WHERE w.job_no = j.job_no)))
   AND (?12 <> 2 OR j.name IS NOT NULL)
   AND (?12 <> 3 OR s.next_at IS NOT NULL) AS passes,
       CASE WHEN ?5 IN (0, 1) AND {held} THEN j.definition END AS held, s.average_us
FROM c CROSS JOIN job j ON j.job_no = c.job_no CROSS JOIN job_state s ON s.job_no = c.job_no
WHERE j.tenant_no = ?1 AND j.state <> 3

-- :name list_jobs_slot_size
WITH RECURSIVE shard (no) AS (
    SELECT coalesce(?2, 0) UNION ALL SELECT no + 1 FROM shard WHERE ?2 IS NULL AND no < 255)
SELECT count(*) FROM (
    SELECT 1 FROM shard CROSS JOIN job_state s ON s.shard = shard.no AND s.slot = ?1 LIMIT 10001)

-- :name list_jobs_status
CASE WHEN j.state = 2 THEN 6
     WHEN j.state = 1 THEN 3
     WHEN s.live > 0 THEN iif(s.live > (SELECT count(*) FROM ready r WHERE r.job_no = j.job_no)
                                     + (SELECT count(*) FROM delayed_attempt w WHERE w.job_no = j.job_no), 2, 0)
     WHEN {held} THEN 7
     WHEN s.next_at <= ?21 THEN 0
     WHEN s.next_at IS NOT NULL THEN 1
     WHEN s.last_status IS NULL THEN 0
     WHEN s.last_status IN (2, 7) THEN 4
     WHEN s.last_status IN (3, 5) THEN 5
     ELSE 6 END
