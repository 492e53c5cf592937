DELETE FROM dedup WHERE tenant_no = $1 AND key = ANY ($2::uuid[]);
