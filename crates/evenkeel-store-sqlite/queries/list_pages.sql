SELECT p.page_no, p.id, j.id AS job, p.url, p.title, p.changed_at, p.seen_at,
       substr(t.text, 1, ?6) AS text
FROM page p CROSS JOIN job j ON j.job_no = p.job_no
            CROSS JOIN page_text t ON t.page_no = p.page_no
WHERE p.tenant_no = ?1 AND j.standing <> 3 AND p.page_no > ?2
  -- No text is above its prefix followed by the last character there is.
  AND p.url >= ?5 AND p.url < ?5 || char(1114111)
ORDER BY p.page_no LIMIT ?3 OFFSET ?4
