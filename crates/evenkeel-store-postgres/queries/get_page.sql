SELECT p.id, j.id, p.url, p.title, p.status, p.content_type, p.depth, p.content_hash,
       p.first_seen_at, p.changed_at, p.seen_at, p.etag, p.last_modified,
       t.text, t.links, t.metadata, t.fields
  FROM page p JOIN job j USING (job_no) JOIN page_text t USING (page_no)
 WHERE p.id = $1 AND p.tenant_no = $2 AND j.standing <> 3;
