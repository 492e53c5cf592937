-- Idempotency keys of API requests.

-- :name begin_request (now, tenant, key, fingerprint, lease_us)
WITH clock AS (
    SELECT {clock} AS now
)
INSERT INTO request (tenant_no, key, fingerprint, begun_at, given_up_at)
SELECT :tenant, :key, :fingerprint, now, now + :lease_us::int8 FROM clock
    ON CONFLICT (tenant_no, key) DO UPDATE
       SET begun_at = greatest(excluded.begun_at, request.begun_at + 1),
           given_up_at = excluded.given_up_at
     WHERE request.status IS NULL AND request.fingerprint = excluded.fingerprint
       AND request.given_up_at <= excluded.begun_at
RETURNING begun_at;

-- :name begin_request_find (tenant, key)
SELECT fingerprint, status, headers, body FROM request WHERE tenant_no = :tenant AND key = :key;

-- :name end_request (tenant, key, begun_at, status, headers, body)
UPDATE request SET status = :status, headers = :headers, body = :body
 WHERE tenant_no = :tenant AND key = :key AND begun_at = :begun_at AND status IS NULL;

-- :name end_request_drop (tenant, key, begun_at)
DELETE FROM request WHERE tenant_no = :tenant AND key = :key AND begun_at = :begun_at
AND status IS NULL;

-- :name prune_requests (before, limit)
-- Several nodes may prune concurrently; each skips rows that another node has locked.
DELETE FROM request WHERE (tenant_no, key) IN (
    SELECT tenant_no, key FROM request WHERE begun_at < :before
     ORDER BY begun_at LIMIT :limit FOR UPDATE SKIP LOCKED);
