-- Reading jobs.

-- :fragment newest_begun_run
-- The newest run that has started. From a record of skipped runs, or a run whose first attempt is
-- still queued, the search continues with the previous run.
WITH RECURSIVE newest AS (
               SELECT s.head_at AS at, s.head_sequence AS sequence, 0 AS depth
                UNION ALL
               SELECT p.prev_at, p.prev_sequence, n.depth + 1
                 FROM newest n
                CROSS JOIN LATERAL (
                      SELECT prev_at, prev_sequence FROM attempt r
                       WHERE r.scheduled_at = n.at AND r.job_no = s.job_no
                         AND r.sequence = n.sequence AND r.attempt = 0
                         AND r.status = {attempt.skipped}
                       UNION ALL
                      SELECT prev_at, prev_sequence FROM ready q
                       WHERE q.scheduled_at = n.at AND q.job_no = s.job_no
                         AND q.sequence = n.sequence AND q.attempt = 0
                         AND NOT EXISTS (SELECT FROM attempt r
                                          WHERE r.scheduled_at = n.at AND r.job_no = s.job_no
                                            AND r.sequence = n.sequence)) AS p
                WHERE p.prev_at IS NOT NULL AND n.depth < 1000
           )

-- :fragment job_columns
-- read_job reads these columns by name.
j.job_no, j.id, j.tenant_no, j.about, j.definition, j.state, s.generation, j.created_at,
       j.updated_at, s.next_at, s.last_fired_at, s.live,
       CASE WHEN s.live > 0 THEN (SELECT count(*) FROM ready q WHERE q.job_no = j.job_no)
                               + (SELECT count(*) FROM delayed_attempt w WHERE w.job_no = j.job_no)
            ELSE 0 END AS waiting,
       s.executions, s.last_status, s.last_start_at, s.last_end_at, s.last_good_start_at,
       s.last_good_end_at, s.failures, s.average_us, s.variance,
       coalesce(s.placed_at, j.created_at) AS since, s.fired,
       CASE WHEN s.live > 0 THEN (
           {newest_begun_run}
           SELECT ARRAY[r.started_at, r.scheduled_at, r.sequence, r.attempt]
             FROM (SELECT * FROM newest ORDER BY depth DESC LIMIT 1) AS n
             JOIN attempt r ON r.scheduled_at = n.at AND r.job_no = s.job_no
             AND r.sequence = n.sequence
            WHERE r.status = {attempt.running} LIMIT 1)
       END AS running,
       CASE WHEN s.live > 0 THEN (
           SELECT ARRAY[scheduled_at, sequence, attempt]
             FROM (SELECT scheduled_at, sequence, attempt FROM ready q WHERE q.job_no = s.job_no
                    UNION ALL
                   SELECT scheduled_at, sequence,
                          attempt FROM delayed_attempt w WHERE w.job_no = s.job_no) AS w
            ORDER BY scheduled_at DESC, sequence DESC, attempt DESC LIMIT 1)
       END AS newest_waiting,
       s.stopped_at, s.succeeded_runs, s.failed_runs,
       CASE WHEN s.last_status IN ({attempts.failed}) THEN (
           SELECT left(r.error, 4096) FROM attempt r
            WHERE r.scheduled_at = s.failed_at AND r.job_no = s.job_no
              AND r.status IN ({attempts.failed})
            ORDER BY r.sequence DESC, r.attempt DESC LIMIT 1)
       END AS last_error, j.number, j.target_no, j.note

-- :name get_jobs (ids, tenant)
SELECT {job_columns}
  FROM job j JOIN job_state s USING (job_no)
 WHERE j.id = ANY (:ids::uuid[]) AND j.tenant_no = :tenant AND j.state <> {job.deleted};

-- :name get_with_now (id, tenant)
-- Reads a job without pending or running attempts and without a failure, as most jobs are. `is_all`
-- is true if the job is such a job; if not, get_jobs reads it. Planning the subqueries of get_jobs
-- costs as much as this whole statement.
SELECT j.job_no, j.id, j.tenant_no, j.about, j.definition, j.state, s.generation, j.created_at,
       j.updated_at, s.next_at, s.last_fired_at, s.live, 0::int8 AS waiting,
       s.executions, s.last_status, s.last_start_at, s.last_end_at, s.last_good_start_at,
       s.last_good_end_at, s.failures, s.average_us, s.variance,
       coalesce(s.placed_at, j.created_at) AS since, s.fired,
       NULL::int8[] AS running, NULL::int8[] AS newest_waiting,
       s.stopped_at, s.succeeded_runs, s.failed_runs, NULL::text AS last_error, j.number,
       j.target_no, j.note,
       (extract(epoch FROM clock_timestamp()) * 1000000)::int8 AS now,
       s.live = 0 AND coalesce(s.last_status NOT IN ({attempts.failed}), true) AS is_all
  FROM job j JOIN job_state s USING (job_no)
 WHERE j.id = :id AND j.tenant_no = :tenant AND j.state <> {job.deleted};

-- :name ids_of_numbers (tenant, numbers)
SELECT j.id
  FROM unnest(:numbers::int8[]) WITH ORDINALITY AS d(number, nth)
  LEFT JOIN job j ON j.tenant_no = :tenant AND j.number = d.number AND j.state <> {job.deleted}
 ORDER BY d.nth;

-- :name job_titles
SELECT job.id, job.name, job.about::json ->> 'source_name' AS source_name
FROM unnest($1::int8[]) WITH ORDINALITY AS wanted (job_no, nth)
LEFT JOIN job USING (job_no)
ORDER BY wanted.nth;

-- :name jobs_named (tenant, name, limit)
SELECT id, nullif(configuration, '') FROM job
 WHERE tenant_no = :tenant AND name = :name AND state <> {job.deleted}
 ORDER BY configuration
 LIMIT :limit;

-- :name slot_loads (tenant, slots, limit)
-- Scans `limit` jobs of a time slot across tenants, and one more job that shows whether there are
-- further jobs. The index on slots starts with the shard, so each slot is looked up in all shards.
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
