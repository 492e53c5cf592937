-- API keys and the audit log.

-- :name create_key
INSERT INTO api_key (id, tenant_no, name, role, hash, created_by, created_at, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO NOTHING

-- :name find_key
SELECT k.id, k.tenant_no, t.name AS tenant_name, k.name, k.role, k.created_by, k.created_at,
       k.expires_at, k.revoked_at, k.last_used_at
FROM api_key k JOIN tenant t ON t.tenant_no = k.tenant_no
WHERE k.hash = ?1

-- :name list_audit
-- Two walks along one index, merged: an order over both tenants would sort them all.
SELECT no, at, tenant_no, subject, role, action, target, status, denied, detail, remote, request_id FROM (
    SELECT * FROM (SELECT * FROM audit
     WHERE tenant_no = ?1 AND (at, no) < (?3, ?4) AND at >= ?5
     ORDER BY at DESC, no DESC LIMIT ?6)
    UNION ALL
    SELECT * FROM (SELECT * FROM audit
     WHERE tenant_no = ?2 AND (at, no) < (?3, ?4) AND at >= ?5
     ORDER BY at DESC, no DESC LIMIT ?6)
)
ORDER BY at DESC, no DESC LIMIT ?6

-- :name list_audit_count
-- Looks at a bounded number of entries, in no order: that would sort them all.
SELECT count(*) FILTER (WHERE (?5 IS NULL OR subject = ?5) AND (?6 IS NULL OR target = ?6)
                          AND (?7 IS NULL OR denied = ?7)),
       count(*)
FROM (SELECT subject, target, denied FROM audit
      WHERE tenant_no IN (?1, ?2) AND at < ?3 AND at >= ?4
      LIMIT ?8) looked_at

-- :name list_keys
SELECT k.id, k.tenant_no, t.name AS tenant_name, k.name, k.role, k.created_by, k.created_at,
       k.expires_at, k.revoked_at, k.last_used_at
FROM api_key k JOIN tenant t ON t.tenant_no = k.tenant_no
WHERE k.tenant_no = ?1 AND k.id > ?2
ORDER BY k.id
LIMIT ?3 OFFSET ?4

-- :name list_keys_count
SELECT count(*) FROM api_key WHERE tenant_no = ?1

-- :name prune_audit
-- Entries are written about in the order of time, so the old ones are the first: no more than these
-- are looked at, and no index is needed.
DELETE FROM audit
WHERE no IN (SELECT no FROM audit ORDER BY no LIMIT ?2) AND at < ?1

-- :name record
INSERT INTO audit (at, tenant_no, subject, role, action, target, status, denied, detail, remote,
                   request_id)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)

-- :name revoke_key
UPDATE api_key SET revoked_at = ?3
WHERE id = ?2 AND tenant_no = ?1 AND revoked_at IS NULL

-- :name use_keys
UPDATE api_key SET last_used_at = max(coalesce(last_used_at, ?2), ?2)
WHERE id = ?1
