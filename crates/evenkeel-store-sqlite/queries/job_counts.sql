-- Counts of jobs by state.

-- :name all_job_counts
-- The stored counts of all tenants, the running attempts that the nodes reported last, and the jobs
-- that wait or have ended, counted up to a limit.
SELECT coalesce(sum(t.job_count), 0), coalesce(sum(t.paused), 0), coalesce(sum(t.cancelled), 0),
       (SELECT coalesce(sum(r.running), 0) FROM node n CROSS JOIN run_stats_running r
        ON r.node_no = n.node_no WHERE n.state IN ({nodes.in_cluster})),
       (SELECT count(*) FROM (SELECT 1 FROM ready LIMIT ?1))
           + (SELECT count(*) FROM (SELECT 1 FROM delayed_attempt LIMIT ?1)),
       coalesce(e.completed, 0), coalesce(e.failed, 0), coalesce(e.cancelled, 0),
       coalesce(e.unborn, 0), coalesce(e.looked_at, 0)
FROM tenant t, (
    SELECT count(*) FILTER (WHERE live = 0 AND last_status IN ({attempts.succeeded})) AS completed,
           count(*) FILTER (WHERE live = 0 AND last_status IN ({attempts.failed})) AS failed,
           count(*) FILTER (WHERE live = 0 AND last_status IN ({attempt.cancelled}, {attempt.superseded})) AS cancelled,
           count(*) FILTER (WHERE live = 0 AND last_status IS NULL) AS unborn,
           count(*) AS looked_at
    FROM (SELECT live, last_status FROM job_state WHERE slot IS NULL AND active = 1 LIMIT ?1)) e

-- :name all_job_counts_due
-- The jobs of all tenants in the current time slot (?2 is now) and in earlier slots, up to a limit,
-- grouped by whether they are due. For due jobs with blackouts, the statement returns the columns
-- that decide whether a blackout delays them.
SELECT s.live = 0 AND s.next_at <= ?2 AS is_due, CASE WHEN s.held THEN s.definition END AS held,
       CASE WHEN s.held THEN s.next_at END AS next_at,
       CASE WHEN s.held THEN s.average_us END AS average_us, count(*) AS jobs
FROM (
    SELECT d.live, d.next_at, d.average_us, j.definition,
           d.live = 0 AND d.next_at <= ?2 AND instr(j.definition, '"blackout_periods"') > 0 AS held
    FROM (
        WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
        SELECT s.job_no, s.live, s.next_at, s.average_us
        FROM shard CROSS JOIN job_state s ON s.shard = shard.no AND s.slot <= ?2 / 900000000
        LIMIT ?1) d
    LEFT JOIN job j ON j.job_no = d.job_no AND d.live = 0 AND d.next_at <= ?2) s
GROUP BY 1, 2, 3, 4

-- :name job_counts
-- Counts the jobs of `c` by status. For due jobs with blackouts (status 7), the statement returns
-- the columns that decide whether a blackout delays them.
SELECT {list_jobs_status} AS status, CASE WHEN {list_jobs_held} THEN j.definition END AS held,
       CASE WHEN {list_jobs_held} THEN s.next_at END AS next_at,
       CASE WHEN {list_jobs_held} THEN s.average_us END AS average_us, count(*) AS jobs
FROM c CROSS JOIN job j ON j.job_no = c.job_no CROSS JOIN job_state s ON s.job_no = c.job_no
WHERE j.tenant_no = :tenant AND j.state <> {job.deleted}
GROUP BY 1, 2, 3, 4
