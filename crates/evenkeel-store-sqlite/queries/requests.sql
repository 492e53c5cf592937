-- Idempotency keys of API requests.

-- :name begin_request (tenant_no, key, fingerprint, begun_at, given_up_at)
INSERT INTO request (tenant_no, key, fingerprint, begun_at, given_up_at)
VALUES (:tenant_no, :key, :fingerprint, :begun_at, :given_up_at)
    ON CONFLICT (tenant_no, key) DO UPDATE
       SET begun_at = max(excluded.begun_at, begun_at + 1), given_up_at = excluded.given_up_at
     WHERE status IS NULL AND fingerprint = excluded.fingerprint
       AND given_up_at <= excluded.begun_at
RETURNING begun_at

-- :name begin_request_find
SELECT fingerprint, status, headers, body FROM request WHERE tenant_no = ?1 AND key = ?2

-- :name end_request (tenant_no, key, begun_at, status, headers, body)
UPDATE request SET status = :status, headers = :headers, body = :body
 WHERE tenant_no = :tenant_no AND key = :key AND begun_at = :begun_at AND status IS NULL

-- :name end_request_drop
DELETE FROM request WHERE tenant_no = ?1 AND key = ?2 AND begun_at = ?3 AND status IS NULL

-- :name prune_requests_find
SELECT EXISTS (SELECT 1 FROM request WHERE begun_at < ?1)

-- :name prune_requests
DELETE FROM request WHERE rowid IN (
    SELECT rowid FROM request WHERE begun_at < ?1 ORDER BY begun_at LIMIT ?2)
