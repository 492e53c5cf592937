-- Idempotency keys of API requests.

-- :name begin_request
WITH clock AS (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
)
INSERT INTO request (tenant_no, key, fingerprint, begun_at, given_up_at)
SELECT $2, $3, $4, now, now + $5::int8 FROM clock
    ON CONFLICT (tenant_no, key) DO UPDATE
       SET begun_at = greatest(excluded.begun_at, request.begun_at + 1),
           given_up_at = excluded.given_up_at
     WHERE request.status IS NULL AND request.fingerprint = excluded.fingerprint
       AND request.given_up_at <= excluded.begun_at
RETURNING begun_at;

-- :name begin_request_find
SELECT fingerprint, status, headers, body FROM request WHERE tenant_no = $1 AND key = $2;

-- :name end_request
UPDATE request SET status = $4, headers = $5, body = $6
 WHERE tenant_no = $1 AND key = $2 AND begun_at = $3 AND status IS NULL;

-- :name end_request_drop
DELETE FROM request WHERE tenant_no = $1 AND key = $2 AND begun_at = $3 AND status IS NULL;

-- :name prune_requests
-- Every node forgets; whoever is second takes others.
DELETE FROM request WHERE (tenant_no, key) IN (
    SELECT tenant_no, key FROM request WHERE begun_at < $1
     ORDER BY begun_at LIMIT $2 FOR UPDATE SKIP LOCKED);
