-- API keys and the audit log.

-- :fragment api_keys
k.id, k.tenant_no, t.name AS tenant_name, k.name, k.role, k.created_by, k.created_at,
       k.expires_at, k.revoked_at, k.last_used_at
  FROM api_key k JOIN tenant t ON t.tenant_no = k.tenant_no

-- :name create_key (id, tenant, name, role, hash, created_by, now, expires_at)
INSERT INTO api_key (id, tenant_no, name, role, hash, created_by, created_at, expires_at)
VALUES (:id, :tenant, :name, :role, :hash, :created_by,
        {clock}, :expires_at)
ON CONFLICT DO NOTHING

-- :name find_key
SELECT {api_keys}
WHERE k.hash = $1

-- :name list_audit (tenant, other_tenant, before_at, before_no, from, limit)
-- Two scans of one index are merged, because sorting the entries of both tenants would read all of
-- them.
SELECT no, at, tenant_no, subject, role, action, target, status, denied, detail, remote,
       request_id FROM (
    (SELECT * FROM audit
     WHERE tenant_no = :tenant AND (at, no) < (:before_at, :before_no) AND at >= :from
     ORDER BY at DESC, no DESC LIMIT :limit)
    UNION ALL
    (SELECT * FROM audit
     WHERE tenant_no = :other_tenant AND (at, no) < (:before_at, :before_no) AND at >= :from
     ORDER BY at DESC, no DESC LIMIT :limit)
) both_walks
ORDER BY at DESC, no DESC LIMIT :limit

-- :name list_audit_count (tenant, other_tenant, before, from, subject, target, denied, limit)
-- Counts within a bounded number of entries in no order, because an order would sort all entries.
SELECT count(*) FILTER (WHERE (:subject::text IS NULL OR subject = :subject)
                        AND (:target::text IS NULL OR target = :target)
                          AND (:denied::bool IS NULL OR denied = :denied)) AS matching,
       count(*) AS scanned
FROM (SELECT subject, target, denied FROM audit
      WHERE tenant_no IN (:tenant, :other_tenant) AND at < :before AND at >= :from
      LIMIT :limit) scanned

-- :name list_keys (tenant, after, limit, offset)
SELECT {api_keys}
WHERE k.tenant_no = :tenant AND k.id > :after
ORDER BY k.id
LIMIT :limit OFFSET :offset

-- :name list_keys_count
SELECT count(*) FROM api_key WHERE tenant_no = $1

-- :name prune_audit (before, limit)
-- Entries are inserted roughly in the order of time, so the first rows are the oldest. Only these
-- are read, and no index on time is needed.
DELETE FROM audit
WHERE no IN (SELECT no FROM audit ORDER BY no LIMIT :limit) AND at < :before

-- :name record_audit (
--   at, tenant, subject, role, action, target, status, denied, detail, remote, request_id
-- )
INSERT INTO audit (at, tenant_no, subject, role, action, target, status, denied, detail, remote,
                   request_id)
SELECT * FROM unnest(:at::int8[], :tenant::int4[], :subject::text[], :role::int2[],
                     :action::text[], :target::text[],
                     :status::int2[], :denied::bool[], :detail::text[], :remote::text[],
                     :request_id::text[])

-- :name revoke_key (tenant, id, now)
UPDATE api_key SET revoked_at = {clock}
WHERE id = :id AND tenant_no = :tenant AND revoked_at IS NULL

-- :name use_keys (ids, at)
UPDATE api_key SET last_used_at = greatest(last_used_at, :at)
WHERE id = ANY (:ids)
