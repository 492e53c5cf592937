-- Reading jobs.

-- :name get_jobs (ids, tenant)
-- Since when a job runs is told by its newest chain that has begun: a record of skipped times, or
-- an attempt that waits for its first worker, leads to the one before.
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
 WHERE j.id = ANY (:ids::uuid[]) AND j.tenant_no = :tenant AND j.state <> {job.deleted};

-- :name get_with_now (id, tenant)
-- All there is to know of a job that neither waits nor runs nor has failed, as most jobs are most of
-- the time; `is_all` says whether this is one. The columns are those of get_jobs, whose long way to
-- the others costs as much to set up as all of this, even for a job that has none of them.
SELECT j.job_no, j.id, j.tenant_no, j.about, j.definition, j.state, s.generation, j.created_at,
       j.updated_at, s.next_at, s.last_fired_at, s.live, 0::int8 AS waiting,
       s.executions, s.last_status, s.last_start_at, s.last_end_at, s.last_good_start_at,
       s.last_good_end_at, s.failures, s.average_us, s.variance,
       coalesce(s.placed_at, j.created_at) AS since, s.fired,
       NULL::int8[] AS running, NULL::int8[] AS newest_waiting,
       s.stopped_at, s.succeeded_runs, s.failed_runs, NULL::text AS last_error, j.number, j.target_no, j.note,
       (extract(epoch FROM clock_timestamp()) * 1000000)::int8 AS now,
       s.live = 0 AND coalesce(s.last_status NOT IN (3, 5), true) AS is_all
  FROM job j JOIN job_state s USING (job_no)
 WHERE j.id = :id AND j.tenant_no = :tenant AND j.state <> {job.deleted};

-- :name ids_of_numbers (tenant, numbers)
SELECT j.id
  FROM unnest(:numbers::int8[]) WITH ORDINALITY AS d(number, nth)
  LEFT JOIN job j ON j.tenant_no = :tenant AND j.number = d.number AND j.state <> {job.deleted}
 ORDER BY d.nth;

-- :name job_titles
SELECT job.id, job.name, job.about::json ->> 'source_name'
FROM unnest($1::int8[]) WITH ORDINALITY AS wanted (job_no, place)
LEFT JOIN job USING (job_no)
ORDER BY wanted.place;

-- :name jobs_named (tenant, name, limit)
SELECT id, nullif(configuration, '') FROM job
 WHERE tenant_no = :tenant AND name = :name AND state <> {job.deleted}
 ORDER BY configuration
 LIMIT :limit;

-- :name slot_loads (tenant, slots, limit)
-- `limit` jobs of a slot are looked at, whoever's they are: the limit comes before the tenant. One more
-- only tells whether these were all. The index on slots has the shard first: each slot is looked up
-- in all of them.
SELECT l.jobs, l.counted_all
  FROM unnest(:slots::int4[]) WITH ORDINALITY AS d(slot, nth)
 CROSS JOIN LATERAL (
       SELECT count(*) FILTER (WHERE f.nth <= :limit::int8 AND f.tenant_no = :tenant) AS jobs,
              count(*) <= :limit::int8 AS counted_all
         FROM (SELECT s.tenant_no, row_number() OVER () AS nth
                 FROM (SELECT s.tenant_no
                         FROM generate_series(0, 255) AS h(shard)
                        CROSS JOIN LATERAL (SELECT tenant_no FROM job_state
                                             WHERE shard = h.shard AND slot = d.slot
                                             LIMIT :limit::int8 + 1) AS s
                        LIMIT :limit::int8 + 1) AS s) AS f) AS l
 ORDER BY d.nth;
