-- Counts of jobs by state.

-- :name all_job_counts
-- Stored counts of all tenants, running attempts as the nodes last reported them, and pending
-- attempts and ended jobs, counted up to `$1`.
SELECT coalesce(sum(t.job_count), 0)::int8, coalesce(sum(t.paused), 0)::int8,
       coalesce(sum(t.cancelled), 0)::int8,
       (SELECT coalesce(sum(r.running), 0)::int8 FROM node n JOIN run_stats_running r USING (node_no)
         WHERE n.state IN ({nodes.in_cluster})),
       (SELECT count(*) FROM (SELECT FROM ready LIMIT $1) AS q)
           + (SELECT count(*) FROM (SELECT FROM delayed_attempt LIMIT $1) AS w),
       (SELECT array[count(*) FILTER (WHERE e.live = 0 AND e.last_status IN ({attempts.succeeded})),
                     count(*) FILTER (WHERE e.live = 0 AND e.last_status IN ({attempts.failed})),
                     count(*) FILTER (WHERE e.live = 0 AND e.last_status IN ({attempt.cancelled}, {attempt.superseded})),
                     count(*) FILTER (WHERE e.live = 0 AND e.last_status IS NULL), count(*)]
          FROM (SELECT live, last_status FROM job_state WHERE slot IS NULL AND active LIMIT $1) AS e)
  FROM tenant t;

-- :name all_job_counts_due
-- Jobs of all tenants in the current time slot and in earlier slots, up to a limit. Returns the
-- numbers of due jobs and of other jobs, and for due jobs with blackouts the columns that decide
-- whether a blackout delays them.
SELECT s.is_due, count(*), CASE WHEN s.held THEN s.definition END,
       CASE WHEN s.held THEN s.average_us END, {statement_time}, CASE WHEN s.held THEN s.next_at END
  FROM (SELECT d.*, j.definition,
               coalesce(d.is_due AND strpos(j.definition, '"blackout_periods"') > 0, false) AS held
          FROM (SELECT s.*, s.live = 0 AND s.next_at <= {statement_time} AS is_due
                  FROM generate_series(0, 255) AS h(shard)
                 CROSS JOIN LATERAL (SELECT job_no, live, next_at, average_us FROM job_state
                                      WHERE shard = h.shard AND slot <= ({statement_time} / 900000000)::int4
                                      LIMIT $1) AS s
                 LIMIT $1) AS d
          LEFT JOIN LATERAL (SELECT definition FROM job
                              WHERE job.job_no = d.job_no AND d.is_due LIMIT 1) AS j ON true) AS s
 GROUP BY 1, 3, 4, 5, 6

-- :name job_counts
-- Returns the numbers of jobs of `c` by status. For due jobs with blackouts (status 7), it also
-- returns the columns that decide their status.
SELECT {list_jobs_status} AS status, count(*), CASE WHEN {list_jobs_held} THEN j.definition END,
       CASE WHEN {list_jobs_held} THEN s.average_us END, {statement_time}, CASE WHEN {list_jobs_held} THEN s.next_at END
  FROM c
 CROSS JOIN LATERAL (SELECT * FROM job WHERE job.job_no = c.job_no LIMIT 1) AS j
 CROSS JOIN LATERAL (SELECT * FROM job_state WHERE job_state.job_no = c.job_no LIMIT 1) AS s
 WHERE j.tenant_no = :tenant::int8::int4 AND j.state <> {job.deleted}
 GROUP BY 1, 3, 4, 5, 6
