-- Pages that crawls store.

-- :fragment page_hit_columns
p.page_no, p.id, j.id AS job_id, p.url, p.title, p.changed_at, p.seen_at

-- :name clear_pages (job_no, limit)
WITH deleted AS (
    DELETE FROM page
     WHERE page_no IN (SELECT page_no FROM page WHERE job_no = :job_no ORDER BY page_no LIMIT :limit)
 RETURNING page_no, bytes
), texts AS (
    DELETE FROM page_text t USING deleted g WHERE t.page_no = g.page_no
)
SELECT count(*), coalesce(sum(bytes), 0)::int8 FROM deleted;

-- :name clear_pages_jobs (after, limit)
-- Every job with pages has a row in page_usage, and there are few such jobs.
SELECT s.job_no FROM page_usage s JOIN job j USING (job_no)
 WHERE j.state = {job.deleted} AND s.job_no > :after ORDER BY s.job_no LIMIT :limit;

-- :name clear_pages_lock
-- Skips a job whose pages another transaction deletes or saves.
SELECT FROM page_usage WHERE job_no = $1 FOR UPDATE SKIP LOCKED;

-- :name clear_pages_usage
DELETE FROM page_usage WHERE job_no = $1;

-- :name prune_pages_lock
SELECT FROM page_usage WHERE job_no = $1 FOR UPDATE;

-- :name get_page (id, tenant)
SELECT p.id, j.id AS job_id, p.url, p.title, p.status, p.content_type, p.depth, p.content_hash,
       p.first_seen_at, p.changed_at, p.seen_at, p.etag, p.last_modified,
       t.text, t.links, t.metadata, t.fields
  FROM page p JOIN job j USING (job_no) JOIN page_text t USING (page_no)
 WHERE p.id = :id AND p.tenant_no = :tenant AND j.state <> {job.deleted};

-- :name save_pages_change (
--   now, id, url, title, status, content_type, depth, content_hash, bytes, etag, last_modified,
--   text, links, metadata, fields, words
-- )
WITH given AS (
    SELECT * FROM unnest(:id::uuid[], :url::text[], :title::text[], :status::int4[],
                         :content_type::text[], :depth::int4[],
                         :content_hash::bytea[], :bytes::int8[], :etag::text[],
                         :last_modified::text[], :text::text[],
                         :links::text[], :metadata::text[], :fields::text[], :words::text[])
        AS g(id, url, title, status, content_type, depth, content_hash, bytes, etag, last_modified,
             text, links, metadata, fields, words)
), changed AS (
    UPDATE page p
       SET url = g.url, title = g.title, status = g.status, content_type = g.content_type,
           depth = g.depth, content_hash = g.content_hash, bytes = g.bytes, changed_at = :now,
           seen_at = :now, etag = g.etag, last_modified = g.last_modified
      FROM given g WHERE p.id = g.id
 RETURNING p.id, p.page_no
)
UPDATE page_text t
   SET text = g.text, links = g.links, metadata = g.metadata, fields = g.fields,
       words = g.words::tsvector
  FROM changed c JOIN given g USING (id) WHERE t.page_no = c.page_no;

-- :name save_pages_count (job_no, bytes, pages)
UPDATE page_usage SET bytes = bytes + :bytes, pages = pages + :pages WHERE job_no = :job_no;

-- :name save_pages_find (ids, job_no)
SELECT id, content_hash, bytes FROM page WHERE id = ANY(:ids) AND job_no = :job_no;

-- :name save_pages_insert (
--   job_no, tenant, now, id, url, title, status, content_type, depth, content_hash, bytes, etag,
--   last_modified, text, links, metadata, fields, words
-- )
WITH given AS (
    SELECT * FROM unnest(:id::uuid[], :url::text[], :title::text[], :status::int4[],
                         :content_type::text[], :depth::int4[],
                         :content_hash::bytea[], :bytes::int8[], :etag::text[],
                         :last_modified::text[], :text::text[],
                         :links::text[], :metadata::text[], :fields::text[],
                         :words::text[]) WITH ORDINALITY
        AS g(id, url, title, status, content_type, depth, content_hash, bytes, etag, last_modified,
             text, links, metadata, fields, words, nth)
), kept AS (
    INSERT INTO page (id, job_no, tenant_no, url, title, status, content_type, depth, content_hash,
                      bytes, first_seen_at, changed_at, seen_at, etag, last_modified)
    SELECT id, :job_no, :tenant, url, title, status, content_type, depth, content_hash, bytes,
           :now, :now, :now,
           etag, last_modified
      FROM given ORDER BY nth
 RETURNING id, page_no
)
INSERT INTO page_text (page_no, text, links, metadata, fields, words)
SELECT k.page_no, g.text, g.links, g.metadata, g.fields, g.words::tsvector
  FROM kept k JOIN given g USING (id);

-- :name save_pages_seen (now, id, etag, last_modified)
UPDATE page p SET seen_at = :now, etag = g.etag, last_modified = g.last_modified
  FROM unnest(:id::uuid[], :etag::text[], :last_modified::text[]) AS g(id, etag, last_modified)
 WHERE p.id = g.id;

-- :name save_pages_usage (job_no, tenant, now)
-- Locks the row, so that transactions that save pages of one job run one after the other.
INSERT INTO page_usage AS s (job_no)
SELECT job_no FROM job WHERE job_no = :job_no AND tenant_no = :tenant AND state <> {job.deleted}
    ON CONFLICT (job_no) DO UPDATE SET bytes = s.bytes
RETURNING bytes, {clock} AS now;

-- :name known_pages (ids, job_no)
SELECT p.id, p.etag, p.last_modified, p.content_hash, t.links
  FROM page p JOIN page_text t USING (page_no)
 WHERE p.id = ANY(:ids) AND p.job_no = :job_no;

-- :name list_pages (tenant, after, url_prefix, offset, limit, chars)
SELECT {page_hit_columns}, left(t.text, :chars) AS beginning
  FROM page p JOIN job j USING (job_no) JOIN page_text t USING (page_no)
 WHERE p.tenant_no = :tenant AND j.state <> {job.deleted} AND p.page_no > :after
   AND (:url_prefix::text IS NULL OR starts_with(p.url, :url_prefix))
 ORDER BY p.page_no OFFSET :offset LIMIT :limit;

-- :name list_pages_count (tenant, url_prefix, limit)
-- Counts at most `limit` pages.
SELECT count(*)
  FROM (SELECT FROM page p JOIN job j USING (job_no)
         WHERE p.tenant_no = :tenant AND j.state <> {job.deleted}
           AND (:url_prefix::text IS NULL OR starts_with(p.url, :url_prefix))
         LIMIT :limit) AS p;

-- :name list_pages_count_of_job (job_no, url_prefix, limit)
SELECT count(*)
  FROM (SELECT FROM page
         WHERE job_no = :job_no AND (:url_prefix::text IS NULL OR starts_with(url, :url_prefix))
         LIMIT :limit) AS p;

-- :name find_job_no (id, tenant)
SELECT job_no FROM job WHERE id = :id AND tenant_no = :tenant AND state <> {job.deleted};

-- :name list_pages_of_job (job_no, after, url_prefix, offset, limit, chars)
-- A range of (job_no, page_no) in that order makes page_job the only suitable index. With a
-- condition on the job alone, the planner may scan all pages by number, and the pages of a small
-- job may come late.
SELECT {page_hit_columns}, left(t.text, :chars) AS beginning
  FROM page p JOIN page_text t USING (page_no)
 CROSS JOIN (SELECT id FROM job WHERE job_no = :job_no AND state <> {job.deleted}) AS j
 WHERE (p.job_no, p.page_no) > (:job_no, :after) AND p.job_no <= :job_no
   AND (:url_prefix::text IS NULL OR starts_with(p.url, :url_prefix))
 ORDER BY p.job_no, p.page_no OFFSET :offset LIMIT :limit;

-- :name list_pages_search (
--   query, title_query, rank_query, tenant, url_prefix, found_max, offset, limit
-- )
-- `query` finds pages, `title_query` matches pages with all words in their title, and `rank_query`
-- gives the rank.
WITH found AS MATERIALIZED (
    SELECT p.page_no, t.words @@ :title_query::text::tsquery AS in_title,
           ts_rank_cd('{0.1, 0.1, 0.1, 1.0}', t.words, :rank_query::text::tsquery, 1) AS score
      FROM page_text t JOIN page p USING (page_no) JOIN job j USING (job_no)
     WHERE t.words @@ :query::text::tsquery AND p.tenant_no = :tenant AND j.state <> {job.deleted}
       AND (:url_prefix::text IS NULL OR starts_with(p.url, :url_prefix))
     LIMIT :found_max
), shown AS (
    SELECT * FROM found ORDER BY in_title DESC, score DESC, page_no OFFSET :offset LIMIT :limit
)
SELECT n.total, {page_hit_columns}
  FROM (SELECT count(*) AS total FROM found) AS n
  LEFT JOIN shown s ON true
  LEFT JOIN page p USING (page_no)
  LEFT JOIN job j USING (job_no)
 ORDER BY s.in_title DESC, s.score DESC, s.page_no;

-- :name list_pages_search_texts (page_nos, chars)
SELECT page_no, left(text, :chars) FROM page_text WHERE page_no = ANY(:page_nos);

-- :name prune_pages (ids, job_no)
WITH deleted AS (
    DELETE FROM page WHERE id = ANY(:ids) AND job_no = :job_no RETURNING page_no, bytes
), texts AS (
    DELETE FROM page_text t USING deleted g WHERE t.page_no = g.page_no
)
SELECT count(*), coalesce(sum(bytes), 0)::int8 FROM deleted;

-- :name see_pages (ids, job_no, now)
UPDATE page
   SET seen_at = {clock}
 WHERE id = ANY(:ids) AND job_no = :job_no;
