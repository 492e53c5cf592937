-- Is any too old, or has a tenant too many?
SELECT EXISTS (SELECT 1 FROM dead_letter WHERE died_at < ?1)
    OR EXISTS (SELECT 1 FROM tenant t
               WHERE EXISTS (SELECT 1 FROM dead_letter d WHERE d.tenant_no = t.tenant_no
                             ORDER BY d.died_at DESC LIMIT 1 OFFSET ?2))
