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
