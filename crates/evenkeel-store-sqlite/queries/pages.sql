-- Pages that crawls store.
--
-- Every URL with a given prefix sorts before the prefix followed by the last Unicode character,
-- char(1114111).

-- :fragment page_hit
SELECT p.page_no, p.id, j.id AS job, p.url, p.title, p.changed_at, p.seen_at,
       substr(t.text, 1, :text_length) AS text
FROM page p CROSS JOIN job j ON j.job_no = p.job_no
            CROSS JOIN page_text t ON t.page_no = p.page_no

-- :fragment page_url_prefix
p.url >= :url AND p.url < :url || char(1114111)

-- :name clear_pages_jobs
SELECT s.job_no FROM page_usage s JOIN job j ON j.job_no = s.job_no
WHERE j.state = {job.deleted} ORDER BY s.job_no LIMIT ?1

-- :name clear_pages_find
SELECT page_no FROM page WHERE job_no = ?1 ORDER BY page_no LIMIT ?2

-- :name clear_pages_usage
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
WHERE p.id = ?1 AND p.tenant_no = ?2 AND j.state <> {job.deleted}

-- :name save_pages_change (
--   page_no, url, title, status, content_type, depth, content_hash, bytes, changed_at, etag,
--   last_modified)
UPDATE page SET url = :url, title = :title, status = :status, content_type = :content_type,
                depth = :depth, content_hash = :content_hash, bytes = :bytes,
                changed_at = :changed_at, seen_at = :changed_at, etag = :etag,
                last_modified = :last_modified
WHERE page_no = :page_no

-- :name save_pages_count
INSERT INTO page_usage (job_no, bytes, pages) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes, pages = pages + excluded.pages

-- :name save_pages_find
SELECT page_no, content_hash, bytes FROM page WHERE id = ?1 AND job_no = ?2

-- :name save_pages_insert (
--   id, job_no, tenant_no, url, title, status, content_type, depth, content_hash, bytes, seen_at,
--   etag, last_modified)
INSERT INTO page (id, job_no, tenant_no, url, title, status, content_type, depth, content_hash,
                  bytes, first_seen_at, changed_at, seen_at, etag, last_modified)
VALUES (:id, :job_no, :tenant_no, :url, :title, :status, :content_type, :depth, :content_hash,
        :bytes, :seen_at, :seen_at, :seen_at, :etag, :last_modified)

-- :name save_pages_seen (page_no, seen_at, etag, last_modified)
UPDATE page SET seen_at = :seen_at, etag = :etag, last_modified = :last_modified
WHERE page_no = :page_no

-- :name save_pages_usage
SELECT coalesce(s.bytes, 0) FROM job j LEFT JOIN page_usage s ON s.job_no = j.job_no
WHERE j.job_no = ?1 AND j.tenant_no = ?2 AND j.state <> {job.deleted}

-- :name save_pages_text (page_no, text, links, metadata, fields)
REPLACE INTO page_text (page_no, text, links, metadata, fields)
VALUES (:page_no, :text, :links, :metadata, :fields)

-- :name save_pages_words (page_no, title, text, home)
REPLACE INTO page_words (rowid, title, text, home) VALUES (:page_no, :title, :text, :home)

-- :name known_pages
SELECT p.id, p.etag, p.last_modified, p.content_hash, t.links
FROM page p JOIN page_text t ON t.page_no = p.page_no
WHERE p.id = ?1 AND p.job_no = ?2

-- :name list_pages (tenant_no, after_page_no, limit, offset, url, text_length)
{page_hit}
WHERE p.tenant_no = :tenant_no AND j.state <> {job.deleted} AND p.page_no > :after_page_no
  AND {page_url_prefix}
ORDER BY p.page_no LIMIT :limit OFFSET :offset

-- :name list_pages_count (tenant_no, url, limit)
SELECT count(*) FROM (
    SELECT 1 FROM page p CROSS JOIN job j ON j.job_no = p.job_no
    WHERE p.tenant_no = :tenant_no AND j.state <> {job.deleted} AND {page_url_prefix}
    LIMIT :limit)

-- :name list_pages_count_of_job (tenant_no, url, limit, job_no)
SELECT count(*) FROM (
    SELECT 1 FROM page p
    WHERE p.job_no = :job_no AND p.tenant_no = :tenant_no AND {page_url_prefix}
    LIMIT :limit)

-- :name list_pages_of_job (tenant_no, after_page_no, limit, offset, url, text_length, job_no)
{page_hit}
WHERE p.job_no = :job_no AND p.tenant_no = :tenant_no AND j.state <> {job.deleted}
  AND p.page_no > :after_page_no AND {page_url_prefix}
ORDER BY p.page_no LIMIT :limit OFFSET :offset

-- :name list_pages_search (words, tenant_no, url, limit)
-- CROSS JOIN keeps the join order, with the full-text index first. The weight of the last column is
-- 0, because the tenant and the job of a page do not count as its content.
SELECT w.rowid AS page_no, bm25(page_words, 10.0, 1.0, 0.0) AS score
FROM page_words w CROSS JOIN page p ON p.page_no = w.rowid CROSS JOIN job j ON j.job_no = p.job_no
WHERE page_words MATCH :words AND p.tenant_no = :tenant_no AND j.state <> {job.deleted}
  AND {page_url_prefix}
LIMIT :limit

-- :name list_pages_search_show (page_no, text_length)
{page_hit}
WHERE p.page_no = :page_no

-- :name list_pages_search_titles
SELECT rowid FROM page_words WHERE page_words MATCH ?1 AND rowid <= ?2

-- :name prune_pages
DELETE FROM page WHERE page_no = ?1 RETURNING bytes

-- :name see_pages
UPDATE page SET seen_at = ?3 WHERE id = ?1 AND job_no = ?2
