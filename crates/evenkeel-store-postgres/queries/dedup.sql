-- Deduplication keys.

-- :name prune_dedup (after_tenant, after_key, limit, before)
-- Scans the next `limit` keys. A key that another transaction has just taken is kept, because its
-- job is not visible here or the key was taken too recently. The job's state is locked together
-- with the key. So a transaction that sets the job's next run time either holds the lock or has
-- committed a version that this statement reads.
WITH scanned AS MATERIALIZED (
    SELECT tenant_no, key FROM dedup_key
     WHERE (tenant_no, key) > (:after_tenant::int4, :after_key::uuid)
     ORDER BY tenant_no, key LIMIT :limit
), expired AS MATERIALIZED (
    SELECT d.tenant_no, d.key
      FROM scanned JOIN dedup_key d USING (tenant_no, key)
      JOIN job j ON j.id = d.job_id
      JOIN job_state s ON s.job_no = j.job_no
     WHERE j.state = {job.deleted} OR d.taken_at < :before::int8 AND s.next_at IS NULL
       AND s.live = 0
                             AND j.state <> {job.paused}
     ORDER BY d.tenant_no, d.key
       FOR UPDATE OF d SKIP LOCKED FOR NO KEY UPDATE OF s SKIP LOCKED
), deleted AS (
    DELETE FROM dedup_key d USING expired WHERE d.tenant_no = expired.tenant_no AND d.key = expired.key
 RETURNING 1
)
SELECT (SELECT count(*) FROM deleted) AS deleted, (SELECT count(*) FROM scanned) AS scanned,
       l.tenant_no, l.key
  FROM (SELECT 1) AS one
  LEFT JOIN (SELECT tenant_no, key FROM scanned ORDER BY tenant_no DESC,
             key DESC LIMIT 1) AS l ON true;
