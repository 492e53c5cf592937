-- API keys and the audit log.

-- :fragment api_key_row
SELECT k.id, k.tenant_no, t.name AS tenant_name, k.name, k.role, k.created_by, k.created_at,
       k.expires_at, k.revoked_at, k.last_used_at
FROM api_key k JOIN tenant t ON t.tenant_no = k.tenant_no

-- :name create_key (id, tenant_no, name, role, hash, created_by, created_at, expires_at)
INSERT INTO api_key (id, tenant_no, name, role, hash, created_by, created_at, expires_at)
VALUES (:id, :tenant_no, :name, :role, :hash, :created_by, :created_at, :expires_at)
ON CONFLICT DO NOTHING

-- :name find_key
{api_key_row}
WHERE k.hash = ?1

-- :name list_audit (tenant_no, other_tenant_no, before_at, before_no, from, limit)
-- Two scans of one index are merged, because ORDER BY over both tenants would sort all their
-- entries.
SELECT no, at, tenant_no, subject, role, action, target, status, denied, detail, remote, request_id FROM (
    SELECT * FROM (SELECT * FROM audit
     WHERE tenant_no = :tenant_no AND (at, no) < (:before_at, :before_no) AND at >= :from
     ORDER BY at DESC, no DESC LIMIT :limit)
    UNION ALL
    SELECT * FROM (SELECT * FROM audit
     WHERE tenant_no = :other_tenant_no AND (at, no) < (:before_at, :before_no) AND at >= :from
     ORDER BY at DESC, no DESC LIMIT :limit)
)
ORDER BY at DESC, no DESC LIMIT :limit

-- :name list_audit_count (tenant_no, other_tenant_no, before, from, subject, target, denied, limit)
-- Reads at most `limit` entries in no order, because an order would sort all entries.
SELECT count(*) FILTER (WHERE (:subject IS NULL OR subject = :subject)
                          AND (:target IS NULL OR target = :target)
                          AND (:denied IS NULL OR denied = :denied)) AS matching,
       count(*) AS entries
FROM (SELECT subject, target, denied FROM audit
      WHERE tenant_no IN (:tenant_no, :other_tenant_no) AND at < :before AND at >= :from
      LIMIT :limit)

-- :name list_keys (tenant_no, after_id, limit, offset)
{api_key_row}
WHERE k.tenant_no = :tenant_no AND k.id > :after_id
ORDER BY k.id
LIMIT :limit OFFSET :offset

-- :name list_keys_count
SELECT count(*) FROM api_key WHERE tenant_no = ?1

-- :name prune_audit
-- Entries are written roughly in the order of time, so the oldest have the lowest numbers. The
-- statement reads only the first `?2` entries and needs no index on the time.
DELETE FROM audit
WHERE no IN (SELECT no FROM audit ORDER BY no LIMIT ?2) AND at < ?1

-- :name record_audit (
--   at, tenant_no, subject, role, action, target, status, denied, detail, remote, request_id)
INSERT INTO audit (at, tenant_no, subject, role, action, target, status, denied, detail, remote,
                   request_id)
VALUES (:at, :tenant_no, :subject, :role, :action, :target, :status, :denied, :detail, :remote,
        :request_id)

-- :name revoke_key
UPDATE api_key SET revoked_at = ?3
WHERE id = ?2 AND tenant_no = ?1 AND revoked_at IS NULL

-- :name use_keys
UPDATE api_key SET last_used_at = max(coalesce(last_used_at, ?2), ?2)
WHERE id = ?1
