-- Statistics of runs, and failures grouped by equal error.

-- :name list_failures (tenant_no, last_at, fingerprint, limit, offset)
SELECT f.fingerprint, f.count, f.first_at, f.last_at, f.error, f.scheduled_at, f.job_no, f.sequence,
       f.attempt, j.id, j.name
FROM failure f
LEFT JOIN job j ON j.job_no = f.job_no AND j.tenant_no = :tenant_no AND j.state <> {job.deleted}
WHERE f.tenant_no = :tenant_no AND (f.last_at, f.fingerprint) < (:last_at, :fingerprint)
ORDER BY f.last_at DESC, f.fingerprint DESC LIMIT :limit OFFSET :offset

-- :name list_failures_count
SELECT count(*) FROM (SELECT 1 FROM failure WHERE tenant_no = ?1 LIMIT ?2)

-- :name prune_failures
DELETE FROM failure WHERE rowid IN (
    SELECT rowid FROM failure WHERE last_at < ?1 ORDER BY last_at LIMIT ?2)

-- :name run_totals
SELECT coalesce(sum(completed), 0) AS completed, coalesce(sum(failed), 0) AS failed,
       coalesce(sum(timed_out), 0) AS timed_out, coalesce(sum(cancelled), 0) AS cancelled,
       coalesce(sum(retries), 0) AS retries, coalesce(sum(stolen), 0) AS stolen,
       coalesce(sum(succeeded_us), 0) AS succeeded_us,
       (SELECT coalesce(sum(r.running), 0) FROM node n
        CROSS JOIN run_stats_running r ON r.node_no = n.node_no AND r.tenant_no = ?1
        WHERE n.state IN ({nodes.in_cluster})) AS running,
       (SELECT max(reported_at) FROM run_stats_node) AS reported_at
FROM run_totals WHERE tenant_no = ?1

-- :name add_run_totals (
--   tenant_no, completed, failed, timed_out, cancelled, retries, stolen, succeeded_us)
INSERT INTO run_totals (tenant_no, completed, failed, timed_out, cancelled, retries, stolen,
                        succeeded_us)
VALUES (:tenant_no, :completed, :failed, :timed_out, :cancelled, :retries, :stolen, :succeeded_us)
ON CONFLICT (tenant_no) DO UPDATE
SET completed = completed + excluded.completed, failed = failed + excluded.failed,
    timed_out = timed_out + excluded.timed_out, cancelled = cancelled + excluded.cancelled,
    retries = retries + excluded.retries, stolen = stolen + excluded.stolen,
    succeeded_us = succeeded_us + excluded.succeeded_us

-- :name add_failures (
--   tenant_no, fingerprint, count, first_at, last_at, scheduled_at, job_no, sequence, attempt, error)
INSERT INTO failure (tenant_no, fingerprint, count, first_at, last_at, scheduled_at, job_no, sequence,
                     attempt, error)
VALUES (:tenant_no, :fingerprint, :count, :first_at, :last_at, :scheduled_at, :job_no, :sequence,
        :attempt, :error)
ON CONFLICT (tenant_no, fingerprint) DO UPDATE
SET count = count + excluded.count,
    scheduled_at = iif(excluded.last_at >= last_at, excluded.scheduled_at, scheduled_at),
    job_no = iif(excluded.last_at >= last_at, excluded.job_no, job_no),
    sequence = iif(excluded.last_at >= last_at, excluded.sequence, sequence),
    attempt = iif(excluded.last_at >= last_at, excluded.attempt, attempt),
    error = iif(excluded.last_at >= last_at, excluded.error, error),
    last_at = max(last_at, excluded.last_at)

-- :name delete_running_counts
DELETE FROM run_stats_running WHERE node_no = ?1

-- :name set_running_counts
INSERT INTO run_stats_running (node_no, tenant_no, running) VALUES (?1, ?2, ?3)
ON CONFLICT (node_no, tenant_no) DO UPDATE SET running = running + excluded.running

-- :name set_reported_at
INSERT INTO run_stats_node (node_no, reported_at) VALUES (?1, ?2)
ON CONFLICT (node_no) DO UPDATE SET reported_at = max(reported_at, excluded.reported_at)
