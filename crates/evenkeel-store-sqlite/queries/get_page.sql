SELECT p.id, j.id AS job, p.url, p.title, p.status, p.content_type, p.depth, p.content_hash,
       p.first_seen_at, p.changed_at, p.seen_at, p.etag, p.last_modified,
       t.text, t.links, t.metadata, t.fields
FROM page p CROSS JOIN job j ON j.job_no = p.job_no
            CROSS JOIN page_text t ON t.page_no = p.page_no
WHERE p.id = ?1 AND p.tenant_no = ?2 AND j.standing <> 3
