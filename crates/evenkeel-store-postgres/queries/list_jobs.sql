-- Lists of jobs: filters, sort orders, totals.

-- :name list_jobs
-- Since when a job runs: as in get_job.
SELECT j.job_no, j.id, j.tenant_no, j.about, j.definition, j.state, s.generation, j.created_at,
       j.updated_at, s.next_at, s.last_fired_at, s.live,
       CASE WHEN s.live > 0 THEN (SELECT count(*) FROM ready q WHERE q.job_no = j.job_no)
                               + (SELECT count(*) FROM delayed_attempt w WHERE w.job_no = j.job_no)
            ELSE 0 END AS waiting,
       s.executions, s.last_status, s.last_start_at, s.last_end_at, s.last_good_start_at,
       s.last_good_end_at, s.failures, s.average_us, s.variance,
       coalesce(s.placed_at, j.created_at) AS since, s.fired,
       CASE WHEN s.live > 0 THEN (
           WITH RECURSIVE newest AS (
               SELECT s.head_at AS at, s.head_sequence AS sequence, 0 AS depth
                UNION ALL
               SELECT p.prev_at, p.prev_sequence, n.depth + 1
                 FROM newest n
                CROSS JOIN LATERAL (
                      SELECT prev_at, prev_sequence FROM attempt r
                       WHERE r.scheduled_at = n.at AND r.job_no = s.job_no
                         AND r.sequence = n.sequence AND r.attempt = 0 AND r.status = {attempt.skipped}
                       UNION ALL
                      SELECT prev_at, prev_sequence FROM ready q
                       WHERE q.scheduled_at = n.at AND q.job_no = s.job_no
                         AND q.sequence = n.sequence AND q.attempt = 0
                         AND NOT EXISTS (SELECT FROM attempt r
                                          WHERE r.scheduled_at = n.at AND r.job_no = s.job_no
                                            AND r.sequence = n.sequence)) AS p
                WHERE p.prev_at IS NOT NULL AND n.depth < 1000
           )
           SELECT ARRAY[r.started_at, r.scheduled_at, r.sequence, r.attempt]
             FROM (SELECT * FROM newest ORDER BY depth DESC LIMIT 1) AS n
             JOIN attempt r ON r.scheduled_at = n.at AND r.job_no = s.job_no AND r.sequence = n.sequence
            WHERE r.status = {attempt.running} LIMIT 1)
       END AS running,
       CASE WHEN s.live > 0 THEN (
           SELECT ARRAY[scheduled_at, sequence, attempt]
             FROM (SELECT scheduled_at, sequence, attempt FROM ready q WHERE q.job_no = s.job_no
                    UNION ALL
                   SELECT scheduled_at, sequence, attempt FROM delayed_attempt w WHERE w.job_no = s.job_no) AS w
            ORDER BY scheduled_at DESC, sequence DESC, attempt DESC LIMIT 1)
       END AS newest_waiting,
       s.stopped_at, s.succeeded_runs, s.failed_runs,
       CASE WHEN s.last_status IN ({attempts.failed}) THEN (
           SELECT left(r.error, 4096) FROM attempt r
            WHERE r.scheduled_at = s.failed_at AND r.job_no = s.job_no AND r.status IN ({attempts.failed})
            ORDER BY r.sequence DESC, r.attempt DESC LIMIT 1)
       END AS last_error, j.number, j.target_no, j.note
  FROM job j JOIN job_state s USING (job_no)
 WHERE j.job_no = ANY ($1::int8[]) AND j.state <> {job.deleted};

-- :name list_jobs_by_created
SELECT job_no FROM job
 WHERE tenant_no = $1::int4 AND state <> {job.deleted} AND job_no > $16::int8
 ORDER BY job_no ASC LIMIT $17::int8 OFFSET $18::int8

-- :name list_jobs_by_label
SELECT job_no FROM job_label
WHERE tenant_no = $1::int4 AND key = ($9::text[])[1] AND value = ($10::text[])[1] AND job_no > $16::int8
ORDER BY job_no ASC LIMIT $17::int8 OFFSET $18::int8

-- :name list_jobs_by_name
SELECT job_no FROM job
 WHERE tenant_no = $1::int4 AND state <> {job.deleted} AND (name, configuration) >= ($16::text, $19::text)
 ORDER BY name ASC, configuration ASC LIMIT $17::int8 OFFSET $18::int8

-- :name list_jobs_by_paused
SELECT job_no FROM job
WHERE tenant_no = $1::int4 AND state = {job.paused} AND job_no > $16::int8
ORDER BY job_no ASC LIMIT $17::int8 OFFSET $18::int8

-- :name list_jobs_by_source
SELECT job_no FROM job
WHERE tenant_no = $1::int4 AND state <> {job.deleted} AND source_id IS NOT NULL AND source_id = $3 AND job_no > $16::int8
ORDER BY job_no ASC LIMIT $17::int8 OFFSET $18::int8

-- :name list_jobs_by_target
SELECT job_no FROM job
WHERE tenant_no = $1::int4 AND target_no IS NOT NULL AND target_no = $14::int8 AND job_no > $16::int8
ORDER BY job_no ASC LIMIT $17::int8 OFFSET $18::int8

-- :name list_jobs_by_updated
SELECT job_no FROM job
 WHERE tenant_no = $1::int4 AND state <> {job.deleted} AND (updated_at, job_no) > ($19::int8, $16::int8)
 ORDER BY updated_at ASC, job_no ASC LIMIT $17::int8 OFFSET $18::int8

-- :name list_jobs_from_all
SELECT job_no FROM job WHERE tenant_no = $1::int4 AND state <> {job.deleted} LIMIT 10001

-- :name list_jobs_from_at_risk
SELECT job_no FROM job_condition WHERE tenant_no = $1::int4 AND level > {condition.ok} LIMIT 10001

-- :name list_jobs_from_ended
SELECT job_no
  FROM (SELECT job_no FROM job WHERE tenant_no = $1::int4 AND state = {job.cancelled}
         UNION ALL
        SELECT job_no FROM job_state WHERE tenant_no = $1::int4 AND slot IS NULL AND active) AS e
 LIMIT 10001

-- :name list_jobs_from_label
SELECT job_no FROM job_label
 WHERE tenant_no = $1::int4 AND key = ($9::text[])[1] AND value = ($10::text[])[1] LIMIT 10001

-- :name list_jobs_from_name
-- No text is above its prefix followed by the last character there is.
SELECT job_no FROM job
 WHERE tenant_no = $1::int4 AND state <> {job.deleted} AND name >= $2 AND name < $2 || U&'\+10FFFF' LIMIT 10001

-- :name list_jobs_from_next_times
SELECT job_no
  FROM (SELECT s.job_no, s.tenant_no
          FROM generate_series(0, 255) AS h(shard)
         CROSS JOIN LATERAL (SELECT job_no, tenant_no FROM job_state
                              WHERE shard = h.shard
                                AND slot BETWEEN coalesce(($11::int8 / 900000000)::int4, -2147483648)
                                             AND coalesce(($12::int8 / 900000000)::int4, 2147483647)
                              LIMIT 10001) AS s
         LIMIT 10001) AS s
 WHERE tenant_no = $1::int4

-- :name list_jobs_from_paused
SELECT job_no FROM job WHERE tenant_no = $1::int4 AND state = {job.paused} LIMIT 10001

-- :name list_jobs_from_pending
-- What waits, what is due by now, and what has no time and never ran. The due ones are among those of
-- this slot and the slots before it: a slot of a large store holds many that are not due yet, so more of
-- them are looked at than of the others.
SELECT job_no FROM (SELECT job_no, tenant_no FROM ready LIMIT 10001) AS r WHERE tenant_no = $1::int4
 UNION
SELECT job_no FROM (SELECT job_no, tenant_no FROM delayed_attempt LIMIT 10001) AS w WHERE tenant_no = $1::int4
 UNION
SELECT job_no FROM (SELECT job_no FROM job_state
                     WHERE tenant_no = $1::int4 AND slot IS NULL AND active LIMIT 10001) AS s
 UNION
SELECT job_no
  FROM (SELECT job_no
          FROM (SELECT s.job_no, s.tenant_no, s.live, s.next_at
                  FROM generate_series(0, 255) AS h(shard)
                 CROSS JOIN LATERAL (SELECT job_no, tenant_no, live, next_at FROM job_state
                                      WHERE shard = h.shard AND slot <= ({now} / 900000000)::int4
                                      LIMIT 100001) AS s
                 LIMIT 100001) AS s
         WHERE tenant_no = $1::int4 AND live = 0 AND next_at <= {now} LIMIT 10001) AS d

-- :name list_jobs_from_running
-- The newest runs of all tenants from where the oldest open one may be, and those that run for
-- long. If the first are too many to look at, so is the whole.
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
 WHERE r.tenant_no = $1::int4 AND r.status = {attempt.running}

-- :name list_jobs_from_source
SELECT job_no FROM job WHERE tenant_no = $1::int4 AND state <> {job.deleted} AND source_id = $3 LIMIT 10001

-- :name list_jobs_from_source_prefix
SELECT job_no FROM job
 WHERE tenant_no = $1::int4 AND state <> {job.deleted} AND source_id IS NOT NULL
   AND source_id >= $4 AND source_id < $4 || U&'\+10FFFF' LIMIT 10001

-- :name list_jobs_from_target
SELECT job_no FROM job WHERE tenant_no = $1::int4 AND target_no = $14::int8 LIMIT 10001

-- :name list_jobs_from_waiting
SELECT job_no FROM (SELECT job_no, tenant_no FROM ready LIMIT 10001) AS r WHERE tenant_no = $1::int4
 UNION
SELECT job_no FROM (SELECT job_no, tenant_no FROM delayed_attempt LIMIT 10001) AS w WHERE tenant_no = $1::int4

-- :name list_jobs_held
j.state = {job.active} AND s.live = 0 AND s.next_at <= {now}
     AND strpos(j.definition, '"blackout_periods"') > 0

-- :name list_jobs_in_slot
-- $17 is one shard, or NULL for all.
SELECT s.job_no
  FROM generate_series(coalesce($17::int4, 0), coalesce($17::int4, 255)) AS h(shard)
 CROSS JOIN LATERAL (SELECT job_no, tenant_no FROM job_state
                      WHERE shard = h.shard AND slot = $16::int4) AS s
 WHERE s.tenant_no = $1::int4

-- :name list_jobs_looked_next_times
SELECT count(*)
  FROM (SELECT
          FROM generate_series(0, 255) AS h(shard)
         CROSS JOIN LATERAL (SELECT FROM job_state
                              WHERE shard = h.shard
                                AND slot BETWEEN coalesce(($11::int8 / 900000000)::int4, -2147483648)
                                             AND coalesce(($12::int8 / 900000000)::int4, 2147483647)
                              LIMIT 10001) AS s
         LIMIT 10001) AS s

-- :name list_jobs_looked_pending
-- If not all of this slot can be looked at, nobody knows how many of them are due: too many.
SELECT greatest((SELECT count(*) FROM (SELECT FROM ready LIMIT 10001) AS r),
                (SELECT count(*) FROM (SELECT FROM delayed_attempt LIMIT 10001) AS w),
                (SELECT count(*) FROM (SELECT FROM job_state
                                        WHERE tenant_no = $1::int4 AND slot IS NULL AND active
                                        LIMIT 10001) AS s),
                (SELECT CASE WHEN count(*) > 100000 THEN 10001
                             ELSE count(*) FILTER (WHERE tenant_no = $1::int4 AND live = 0
                                                     AND next_at <= {now}) END
                   FROM (SELECT s.tenant_no, s.live, s.next_at
                  FROM generate_series(0, 255) AS h(shard)
                 CROSS JOIN LATERAL (SELECT tenant_no, live, next_at FROM job_state
                                      WHERE shard = h.shard AND slot <= ({now} / 900000000)::int4
                                      LIMIT 100001) AS s
                 LIMIT 100001) AS s))

-- :name list_jobs_looked_running
SELECT count(*)
  FROM (SELECT FROM attempt WHERE scheduled_at >= (SELECT min(low_watermark) FROM node WHERE state <> {node.gone})
         ORDER BY scheduled_at DESC LIMIT 10001) AS r

-- :name list_jobs_looked_waiting
SELECT greatest((SELECT count(*) FROM (SELECT FROM ready LIMIT 10001) AS r),
                (SELECT count(*) FROM (SELECT FROM delayed_attempt LIMIT 10001) AS w))

-- :name list_jobs_name_of
SELECT name, configuration FROM job WHERE tenant_no = $1 AND job_no = $2 AND name IS NOT NULL

-- :name list_jobs_next_slot
SELECT min(s.slot)
  FROM generate_series(0, 255) AS h(shard)
 CROSS JOIN LATERAL (SELECT slot FROM job_state WHERE shard = h.shard AND slot >= $1::int4
                      ORDER BY slot LIMIT 1) AS s

-- :name list_jobs_next_slot_back
SELECT max(s.slot)
  FROM generate_series(0, 255) AS h(shard)
 CROSS JOIN LATERAL (SELECT slot FROM job_state WHERE shard = h.shard AND slot <= $1::int4
                      ORDER BY slot DESC LIMIT 1) AS s

-- :name list_jobs_passes
-- Do the jobs of `c` pass the filter? The states are numbered as in JobStatus::ALL. Each is looked
-- up by its number (LIMIT 1 sees to that): there are never many. A due job with blackouts (7) is pending
-- or scheduled: who asks decides, from the last three columns.
SELECT j.job_no, j.updated_at, s.next_at, CASE WHEN $13::int2 = 2 THEN j.name END,
       CASE WHEN $13::int2 = 2 THEN j.configuration END,
       ($2::text IS NULL OR starts_with(j.name, $2))
   AND ($3::text IS NULL OR j.source_id = $3)
   AND ($4::text IS NULL OR starts_with(j.source_id, $4))
   AND ($5::int2 IS NULL OR CASE {status} WHEN $5 THEN true WHEN 7 THEN $5 IN (0, 1) ELSE false END)
   AND ($6::int2 IS NULL
        OR $6 = coalesce((SELECT level FROM job_condition v WHERE v.job_no = j.job_no), 0))
   AND ($7::text IS NULL OR j.executor = $7)
   AND ($8::int2 IS NULL OR j.lane = $8)
   AND NOT EXISTS (SELECT FROM unnest($9::text[], $10::text[]) AS l(key, value)
                    WHERE NOT EXISTS (SELECT FROM job_label b
                                       WHERE b.job_no = j.job_no AND b.key = l.key
                                         AND b.value = l.value))
   AND ($11::int8 IS NULL OR s.next_at >= $11)
   AND ($12::int8 IS NULL OR s.next_at < $12)
   AND ($14::int8 IS NULL OR j.target_no = $14)
   AND ($15::int2 IS NULL
        OR s.live > 0 AND ($15 = 1) =
           (s.live > (SELECT count(*) FROM ready r WHERE r.job_no = j.job_no)
                   + (SELECT count(*) FROM delayed_attempt w WHERE w.job_no = j.job_no)))
   AND ($13::int2 <> 2 OR j.name IS NOT NULL)
   AND ($13::int2 <> 3 OR s.next_at IS NOT NULL) AS passes,
       CASE WHEN $5::int2 IN (0, 1) AND {held} THEN j.definition END, s.average_us, {now}
  FROM c
 CROSS JOIN LATERAL (SELECT * FROM job WHERE job.job_no = c.job_no LIMIT 1) AS j
 CROSS JOIN LATERAL (SELECT * FROM job_state WHERE job_state.job_no = c.job_no LIMIT 1) AS s
 WHERE j.tenant_no = $1::int4 AND j.state <> {job.deleted}

-- :name list_jobs_slot_size
SELECT count(*)
  FROM (SELECT
          FROM generate_series(coalesce($2::int4, 0), coalesce($2::int4, 255)) AS h(shard)
         CROSS JOIN LATERAL (SELECT FROM job_state WHERE shard = h.shard AND slot = $1::int4
                              LIMIT 10001) AS s
         LIMIT 10001) AS s

-- :name list_jobs_status
CASE WHEN j.state = {job.cancelled} THEN 6
     WHEN j.state = {job.paused} THEN 3
     WHEN s.live > 0 THEN
          CASE WHEN s.live > (SELECT count(*) FROM ready r WHERE r.job_no = j.job_no)
                           + (SELECT count(*) FROM delayed_attempt w WHERE w.job_no = j.job_no)
               THEN 2 ELSE 0 END
     WHEN {held} THEN 7
     WHEN s.next_at <= {now} THEN 0
     WHEN s.next_at IS NOT NULL THEN 1
     WHEN s.last_status IS NULL THEN 0
     WHEN s.last_status IN ({attempts.succeeded}) THEN 4
     WHEN s.last_status IN ({attempts.failed}) THEN 5
     ELSE 6 END

-- :name list_jobs_total
SELECT job_count FROM tenant WHERE tenant_no = $1;
