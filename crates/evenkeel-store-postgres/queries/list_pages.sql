SELECT p.page_no, p.id, j.id, p.url, p.title, p.changed_at, p.seen_at, left(t.text, $6)
  FROM page p JOIN job j USING (job_no) JOIN page_text t USING (page_no)
 WHERE p.tenant_no = $1 AND j.standing <> 3 AND p.page_no > $2
   AND ($3::text IS NULL OR starts_with(p.url, $3))
 ORDER BY p.page_no OFFSET $4 LIMIT $5;
