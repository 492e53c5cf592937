-- Pages that crawls store.

-- :name clear_pages
WITH gone AS (
    DELETE FROM page
     WHERE page_no IN (SELECT page_no FROM page WHERE job_no = $1 ORDER BY page_no LIMIT $2)
 RETURNING page_no, bytes
), texts AS (
    DELETE FROM page_text t USING gone g WHERE t.page_no = g.page_no
)
SELECT count(*), coalesce(sum(bytes), 0)::int8 FROM gone;

-- :name clear_pages_jobs
-- Every job that has pages has a shelf, and shelves are few.
SELECT s.job_no FROM page_usage s JOIN job j USING (job_no)
 WHERE j.state = 3 AND s.job_no > $1 ORDER BY s.job_no LIMIT $2;

-- :name clear_pages_lock
-- One that somebody else clears, or keeps pages on, is left to them.
SELECT FROM page_usage WHERE job_no = $1 FOR UPDATE SKIP LOCKED;

-- :name clear_pages_shelf
DELETE FROM page_usage WHERE job_no = $1;

-- :name prune_pages_lock
SELECT FROM page_usage WHERE job_no = $1 FOR UPDATE;

-- :name get_page
SELECT p.id, j.id, p.url, p.title, p.status, p.content_type, p.depth, p.content_hash,
       p.first_seen_at, p.changed_at, p.seen_at, p.etag, p.last_modified,
       t.text, t.links, t.metadata, t.fields
  FROM page p JOIN job j USING (job_no) JOIN page_text t USING (page_no)
 WHERE p.id = $1 AND p.tenant_no = $2 AND j.state <> 3;

-- :name save_pages_change
WITH given AS (
    SELECT * FROM unnest($2::uuid[], $3::text[], $4::text[], $5::int4[], $6::text[], $7::int4[],
                         $8::bytea[], $9::int8[], $10::text[], $11::text[], $12::text[],
                         $13::text[], $14::text[], $15::text[], $16::text[])
        AS g(id, url, title, status, content_type, depth, content_hash, bytes, etag, last_modified,
             text, links, metadata, fields, words)
), changed AS (
    UPDATE page p
       SET url = g.url, title = g.title, status = g.status, content_type = g.content_type,
           depth = g.depth, content_hash = g.content_hash, bytes = g.bytes, changed_at = $1,
           seen_at = $1, etag = g.etag, last_modified = g.last_modified
      FROM given g WHERE p.id = g.id
 RETURNING p.id, p.page_no
)
UPDATE page_text t
   SET text = g.text, links = g.links, metadata = g.metadata, fields = g.fields,
       words = g.words::tsvector
  FROM changed c JOIN given g USING (id) WHERE t.page_no = c.page_no;

-- :name save_pages_count
UPDATE page_usage SET bytes = bytes + $2, pages = pages + $3 WHERE job_no = $1;

-- :name save_pages_find
SELECT id, content_hash, bytes FROM page WHERE id = ANY($1) AND job_no = $2;

-- :name save_pages_insert
WITH given AS (
    SELECT * FROM unnest($4::uuid[], $5::text[], $6::text[], $7::int4[], $8::text[], $9::int4[],
                         $10::bytea[], $11::int8[], $12::text[], $13::text[], $14::text[],
                         $15::text[], $16::text[], $17::text[], $18::text[]) WITH ORDINALITY
        AS g(id, url, title, status, content_type, depth, content_hash, bytes, etag, last_modified,
             text, links, metadata, fields, words, nth)
), kept AS (
    INSERT INTO page (id, job_no, tenant_no, url, title, status, content_type, depth, content_hash,
                      bytes, first_seen_at, changed_at, seen_at, etag, last_modified)
    SELECT id, $1, $2, url, title, status, content_type, depth, content_hash, bytes, $3, $3, $3,
           etag, last_modified
      FROM given ORDER BY nth
 RETURNING id, page_no
)
INSERT INTO page_text (page_no, text, links, metadata, fields, words)
SELECT k.page_no, g.text, g.links, g.metadata, g.fields, g.words::tsvector
  FROM kept k JOIN given g USING (id);

-- :name save_pages_seen
UPDATE page p SET seen_at = $1, etag = g.etag, last_modified = g.last_modified
  FROM unnest($2::uuid[], $3::text[], $4::text[]) AS g(id, etag, last_modified)
 WHERE p.id = g.id;

-- :name save_pages_shelf
-- Locks the shelf, so that those who keep pages of one job at once do it one after the other.
INSERT INTO page_usage AS s (job_no)
SELECT job_no FROM job WHERE job_no = $1 AND tenant_no = $2 AND state <> 3
    ON CONFLICT (job_no) DO UPDATE SET bytes = s.bytes
RETURNING bytes, coalesce($3::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8);

-- :name known_pages
SELECT p.id, p.etag, p.last_modified, p.content_hash, t.links
  FROM page p JOIN page_text t USING (page_no)
 WHERE p.id = ANY($1) AND p.job_no = $2;

-- :name list_pages
SELECT p.page_no, p.id, j.id, p.url, p.title, p.changed_at, p.seen_at, left(t.text, $6)
  FROM page p JOIN job j USING (job_no) JOIN page_text t USING (page_no)
 WHERE p.tenant_no = $1 AND j.state <> 3 AND p.page_no > $2
   AND ($3::text IS NULL OR starts_with(p.url, $3))
 ORDER BY p.page_no OFFSET $4 LIMIT $5;

-- :name list_pages_count
-- Counts the pages that fit, but not for ever.
SELECT count(*)
  FROM (SELECT FROM page p JOIN job j USING (job_no)
         WHERE p.tenant_no = $1 AND j.state <> 3
           AND ($2::text IS NULL OR starts_with(p.url, $2))
         LIMIT $3) AS p;

-- :name list_pages_count_of_job
SELECT count(*)
  FROM (SELECT FROM page
         WHERE job_no = $1 AND ($2::text IS NULL OR starts_with(url, $2))
         LIMIT $3) AS p;

-- :name list_pages_job
SELECT job_no FROM job WHERE id = $1 AND tenant_no = $2 AND state <> 3;

-- :name list_pages_of_job
-- A job's pages are its tenant's. They are asked for as a range of (job_no, page_no), in that
-- order, so that page_job is the one index that serves: with job_no = $1 the planner may walk along
-- the pages of all jobs by their number, and a small job's come late.
SELECT p.page_no, p.id, j.id, p.url, p.title, p.changed_at, p.seen_at, left(t.text, $6)
  FROM page p JOIN page_text t USING (page_no)
 CROSS JOIN (SELECT id FROM job WHERE job_no = $1 AND state <> 3) AS j
 WHERE (p.job_no, p.page_no) > ($1, $2) AND p.job_no <= $1
   AND ($3::text IS NULL OR starts_with(p.url, $3))
 ORDER BY p.job_no, p.page_no OFFSET $4 LIMIT $5;

-- :name list_pages_search
-- $1 finds, $2 tells whether it is all in the title, $3 is what counts for the rank.
WITH found AS MATERIALIZED (
    SELECT p.page_no, t.words @@ $2::text::tsquery AS in_title,
           ts_rank_cd('{0.1, 0.1, 0.1, 1.0}', t.words, $3::text::tsquery, 1) AS score
      FROM page_text t JOIN page p USING (page_no) JOIN job j USING (job_no)
     WHERE t.words @@ $1::text::tsquery AND p.tenant_no = $4 AND j.state <> 3
       AND ($5::text IS NULL OR starts_with(p.url, $5))
     LIMIT $6
), shown AS (
    SELECT * FROM found ORDER BY in_title DESC, score DESC, page_no OFFSET $7 LIMIT $8
)
SELECT n.total, p.page_no, p.id, j.id, p.url, p.title, p.changed_at, p.seen_at
  FROM (SELECT count(*) AS total FROM found) AS n
  LEFT JOIN shown s ON true
  LEFT JOIN page p USING (page_no)
  LEFT JOIN job j USING (job_no)
 ORDER BY s.in_title DESC, s.score DESC, s.page_no;

-- :name list_pages_search_texts
SELECT page_no, left(text, $2) FROM page_text WHERE page_no = ANY($1);

-- :name prune_pages
WITH gone AS (
    DELETE FROM page WHERE id = ANY($1) AND job_no = $2 RETURNING page_no, bytes
), texts AS (
    DELETE FROM page_text t USING gone g WHERE t.page_no = g.page_no
)
SELECT count(*), coalesce(sum(bytes), 0)::int8 FROM gone;

-- :name see_pages
UPDATE page
   SET seen_at = coalesce($3::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
 WHERE id = ANY($1) AND job_no = $2;
