-- Statistics of runs, and failures grouped by equal error.

-- :name list_failures (tenant, before_at, before_fingerprint, offset, limit)
SELECT f.scheduled_at, f.job_no, f.sequence, f.attempt, f.fingerprint, f.count, f.first_at,
       f.last_at,
       f.error, j.id AS job_id, j.name AS job_name
  FROM failure f LEFT JOIN job j ON j.job_no = f.job_no AND j.tenant_no = :tenant
  AND j.state <> {job.deleted}
 WHERE f.tenant_no = :tenant
   AND (f.last_at, f.fingerprint) < (:before_at::int8, :before_fingerprint::int8)
 ORDER BY f.last_at DESC, f.fingerprint DESC OFFSET :offset LIMIT :limit;

-- :name list_failures_count (tenant, limit)
SELECT count(*) FROM (SELECT FROM failure WHERE tenant_no = :tenant LIMIT :limit) AS f;

-- :name prune_failures (before, limit)
DELETE FROM failure
 WHERE (tenant_no, fingerprint) IN (
       SELECT tenant_no, fingerprint FROM failure WHERE last_at < :before ORDER BY last_at LIMIT :limit
          FOR UPDATE SKIP LOCKED);

-- :name run_totals
SELECT coalesce(sum(completed), 0)::int8 AS completed, coalesce(sum(failed), 0)::int8 AS failed,
       coalesce(sum(timed_out), 0)::int8 AS timed_out,
       coalesce(sum(cancelled), 0)::int8 AS cancelled,
       coalesce(sum(retries), 0)::int8 AS retries, coalesce(sum(stolen), 0)::int8 AS stolen,
       coalesce(sum(succeeded_us), 0)::int8 AS succeeded_us,
       (SELECT coalesce(sum(r.running), 0)::int8
          FROM node n JOIN run_stats_running r ON r.node_no = n.node_no AND r.tenant_no = $1
         WHERE n.state IN ({nodes.in_cluster})) AS running,
       (SELECT max(reported_at) FROM run_stats_node) AS reported_at
  FROM run_totals WHERE tenant_no = $1;

-- :name add_run_totals (
--   tenant, completed, failed, timed_out, cancelled, retries, stolen, succeeded_us
-- )
-- Rows are written in the order of tenants, so that two nodes cannot deadlock.
INSERT INTO run_totals AS t (tenant_no, completed, failed, timed_out, cancelled, retries, stolen,
                             succeeded_us)
SELECT * FROM unnest(:tenant::int4[], :completed::int8[], :failed::int8[], :timed_out::int8[],
                     :cancelled::int8[], :retries::int8[], :stolen::int8[],
                     :succeeded_us::int8[]) AS d(tenant_no, completed, failed, timed_out,
                                                 cancelled, retries, stolen, succeeded_us)
 ORDER BY tenant_no
    ON CONFLICT (tenant_no) DO UPDATE
   SET completed = t.completed + excluded.completed, failed = t.failed + excluded.failed,
       timed_out = t.timed_out + excluded.timed_out, cancelled = t.cancelled + excluded.cancelled,
       retries = t.retries + excluded.retries, stolen = t.stolen + excluded.stolen,
       succeeded_us = t.succeeded_us + excluded.succeeded_us;

-- :name add_failures (
--   now, tenant, fingerprint, count, last_at, scheduled_at, job_no, sequence, attempt, error
-- )
-- Rows are written in key order, so that two nodes cannot deadlock.
INSERT INTO failure AS f (tenant_no, fingerprint, count, first_at, last_at, scheduled_at, job_no,
                          sequence, attempt, error)
SELECT tenant_no, fingerprint, count, :now::int8, last_at, scheduled_at, job_no, sequence,
       attempt, error
  FROM unnest(:tenant::int4[], :fingerprint::int8[], :count::int8[], :last_at::int8[],
              :scheduled_at::int8[], :job_no::int8[], :sequence::int4[],
              :attempt::int2[], :error::text[])
       AS d(tenant_no, fingerprint, count, last_at, scheduled_at, job_no, sequence, attempt, error)
 ORDER BY tenant_no, fingerprint
    ON CONFLICT (tenant_no, fingerprint) DO UPDATE
   SET count = f.count + excluded.count, last_at = greatest(f.last_at, excluded.last_at),
       scheduled_at = CASE WHEN excluded.last_at >= f.last_at THEN excluded.scheduled_at
                           ELSE f.scheduled_at END,
       job_no = CASE WHEN excluded.last_at >= f.last_at THEN excluded.job_no ELSE f.job_no END,
       sequence = CASE WHEN excluded.last_at >= f.last_at THEN excluded.sequence ELSE f.sequence END,
       attempt = CASE WHEN excluded.last_at >= f.last_at THEN excluded.attempt ELSE f.attempt END,
       error = CASE WHEN excluded.last_at >= f.last_at THEN excluded.error ELSE f.error END;

-- :name delete_running_counts (node, tenants)
DELETE FROM run_stats_running WHERE node_no = :node AND tenant_no <> ALL (:tenants::int4[]);

-- :name set_running_counts (node, tenant, running)
INSERT INTO run_stats_running (node_no, tenant_no, running)
SELECT :node, * FROM unnest(:tenant::int4[], :running::int4[])
    ON CONFLICT (node_no, tenant_no) DO UPDATE SET running = excluded.running;

-- :name set_reported_at (node, reported_at)
INSERT INTO run_stats_node AS t (node_no, reported_at) VALUES (:node, :reported_at)
    ON CONFLICT (node_no) DO UPDATE SET reported_at = greatest(t.reported_at, excluded.reported_at);
