-- CROSS JOIN keeps the order: the words first. The weight of the last column is 0, because whose
-- a page is says nothing about what is on it.
SELECT w.rowid AS page_no, bm25(page_words, 10.0, 1.0, 0.0) AS score
FROM page_words w CROSS JOIN page p ON p.page_no = w.rowid CROSS JOIN job j ON j.job_no = p.job_no
WHERE page_words MATCH ?1 AND p.tenant_no = ?2 AND j.standing <> 3
  AND p.url >= ?3 AND p.url < ?3 || char(1114111)
LIMIT ?4
