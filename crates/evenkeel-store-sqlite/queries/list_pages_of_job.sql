SELECT p.page_no, p.id, j.id AS job, p.url, p.title, p.changed_at, p.seen_at,
       substr(t.text, 1, ?6) AS text
FROM page p CROSS JOIN job j ON j.job_no = p.job_no
            CROSS JOIN page_text t ON t.page_no = p.page_no
WHERE p.job_no = ?7 AND p.tenant_no = ?1 AND j.standing <> 3 AND p.page_no > ?2
  AND p.url >= ?5 AND p.url < ?5 || char(1114111)
ORDER BY p.page_no LIMIT ?3 OFFSET ?4
