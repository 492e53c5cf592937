DELETE FROM failure
 WHERE (tenant_no, fingerprint) IN (
       SELECT tenant_no, fingerprint FROM failure WHERE last_at < $1 ORDER BY last_at LIMIT $2
          FOR UPDATE SKIP LOCKED);
