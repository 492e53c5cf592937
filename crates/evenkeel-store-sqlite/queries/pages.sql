-- Pages that crawls store.

-- :name clear_pages_jobs
SELECT s.job_no FROM page_usage s JOIN job j ON j.job_no = s.job_no
WHERE j.state = 3 ORDER BY s.job_no LIMIT ?1

-- :name clear_pages_find
SELECT page_no FROM page WHERE job_no = ?1 ORDER BY page_no LIMIT ?2

-- :name clear_pages_shelf
DELETE FROM page_usage WHERE job_no = ?1

-- :name prune_pages_text
DELETE FROM page_text WHERE page_no = ?1

-- :name prune_pages_words
DELETE FROM page_words WHERE rowid = ?1

-- :name get_page
SELECT p.id, j.id AS job, p.url, p.title, p.status, p.content_type, p.depth, p.content_hash,
       p.first_seen_at, p.changed_at, p.seen_at, p.etag, p.last_modified,
       t.text, t.links, t.metadata, t.fields
FROM page p CROSS JOIN job j ON j.job_no = p.job_no
            CROSS JOIN page_text t ON t.page_no = p.page_no
WHERE p.id = ?1 AND p.tenant_no = ?2 AND j.state <> 3

-- :name save_pages_change
UPDATE page SET url = ?2, title = ?3, status = ?4, content_type = ?5, depth = ?6,
                content_hash = ?7, bytes = ?8, changed_at = ?9, seen_at = ?9, etag = ?10,
                last_modified = ?11
WHERE page_no = ?1

-- :name save_pages_count
INSERT INTO page_usage (job_no, bytes, pages) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes, pages = pages + excluded.pages

-- :name save_pages_find
SELECT page_no, content_hash, bytes FROM page WHERE id = ?1 AND job_no = ?2

-- :name save_pages_insert
INSERT INTO page (id, job_no, tenant_no, url, title, status, content_type, depth, content_hash,
                  bytes, first_seen_at, changed_at, seen_at, etag, last_modified)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?11, ?12, ?13)

-- :name save_pages_seen
UPDATE page SET seen_at = ?2, etag = ?3, last_modified = ?4 WHERE page_no = ?1

-- :name save_pages_shelf
SELECT coalesce(s.bytes, 0) FROM job j LEFT JOIN page_usage s ON s.job_no = j.job_no
WHERE j.job_no = ?1 AND j.tenant_no = ?2 AND j.state <> 3

-- :name save_pages_text
REPLACE INTO page_text (page_no, text, links, metadata, fields) VALUES (?1, ?2, ?3, ?4, ?5)

-- :name save_pages_words
REPLACE INTO page_words (rowid, title, text, home) VALUES (?1, ?2, ?3, ?4)

-- :name known_pages
SELECT p.id, p.etag, p.last_modified, p.content_hash, t.links
FROM page p JOIN page_text t ON t.page_no = p.page_no
WHERE p.id = ?1 AND p.job_no = ?2

-- :name list_pages
SELECT p.page_no, p.id, j.id AS job, p.url, p.title, p.changed_at, p.seen_at,
       substr(t.text, 1, ?6) AS text
FROM page p CROSS JOIN job j ON j.job_no = p.job_no
            CROSS JOIN page_text t ON t.page_no = p.page_no
WHERE p.tenant_no = ?1 AND j.state <> 3 AND p.page_no > ?2
  -- No text is above its prefix followed by the last character there is.
  AND p.url >= ?5 AND p.url < ?5 || char(1114111)
ORDER BY p.page_no LIMIT ?3 OFFSET ?4

-- :name list_pages_count
SELECT count(*) FROM (
    SELECT 1 FROM page p CROSS JOIN job j ON j.job_no = p.job_no
    WHERE p.tenant_no = ?1 AND j.state <> 3 AND p.url >= ?2 AND p.url < ?2 || char(1114111)
    LIMIT ?3)

-- :name list_pages_count_of_job
SELECT count(*) FROM (
    SELECT 1 FROM page p
    WHERE p.job_no = ?4 AND p.tenant_no = ?1 AND p.url >= ?2 AND p.url < ?2 || char(1114111)
    LIMIT ?3)

-- :name list_pages_job
SELECT job_no FROM job WHERE id = ?1 AND tenant_no = ?2 AND state <> 3

-- :name list_pages_of_job
SELECT p.page_no, p.id, j.id AS job, p.url, p.title, p.changed_at, p.seen_at,
       substr(t.text, 1, ?6) AS text
FROM page p CROSS JOIN job j ON j.job_no = p.job_no
            CROSS JOIN page_text t ON t.page_no = p.page_no
WHERE p.job_no = ?7 AND p.tenant_no = ?1 AND j.state <> 3 AND p.page_no > ?2
  AND p.url >= ?5 AND p.url < ?5 || char(1114111)
ORDER BY p.page_no LIMIT ?3 OFFSET ?4

-- :name list_pages_search
-- CROSS JOIN keeps the order: the words first. The weight of the last column is 0, because whose
-- a page is says nothing about what is on it.
SELECT w.rowid AS page_no, bm25(page_words, 10.0, 1.0, 0.0) AS score
FROM page_words w CROSS JOIN page p ON p.page_no = w.rowid CROSS JOIN job j ON j.job_no = p.job_no
WHERE page_words MATCH ?1 AND p.tenant_no = ?2 AND j.state <> 3
  AND p.url >= ?3 AND p.url < ?3 || char(1114111)
LIMIT ?4

-- :name list_pages_search_show
SELECT p.page_no, p.id, j.id AS job, p.url, p.title, p.changed_at, p.seen_at,
       substr(t.text, 1, ?2) AS text
FROM page p CROSS JOIN job j ON j.job_no = p.job_no
            CROSS JOIN page_text t ON t.page_no = p.page_no
WHERE p.page_no = ?1

-- :name list_pages_search_titles
SELECT rowid FROM page_words WHERE page_words MATCH ?1 AND rowid <= ?2

-- :name prune_pages
DELETE FROM page WHERE page_no = ?1 RETURNING bytes

-- :name see_pages
UPDATE page SET seen_at = ?3 WHERE id = ?1 AND job_no = ?2
