INSERT INTO page (id, job_no, tenant_no, url, title, status, content_type, depth, content_hash,
                  bytes, first_seen_at, changed_at, seen_at, etag, last_modified)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?11, ?12, ?13)
