-- Every node forgets; whoever is second takes others.
DELETE FROM request WHERE (tenant_no, key) IN (
    SELECT tenant_no, key FROM request WHERE begun_at < $1
     ORDER BY begun_at LIMIT $2 FOR UPDATE SKIP LOCKED);
