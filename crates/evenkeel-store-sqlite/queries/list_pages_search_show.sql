SELECT p.page_no, p.id, j.id AS job, p.url, p.title, p.changed_at, p.seen_at,
       substr(t.text, 1, ?2) AS text
FROM page p CROSS JOIN job j ON j.job_no = p.job_no
            CROSS JOIN page_text t ON t.page_no = p.page_no
WHERE p.page_no = ?1
