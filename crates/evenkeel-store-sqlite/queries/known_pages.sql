SELECT p.id, p.etag, p.last_modified, p.content_hash, t.links
FROM page p JOIN page_text t ON t.page_no = p.page_no
WHERE p.id = ?1 AND p.job_no = ?2
