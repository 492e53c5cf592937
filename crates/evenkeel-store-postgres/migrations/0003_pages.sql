-- What crawls keep. `page` is written whenever a page is seen, `page_text` only when its content
-- has changed: an update of a row that cannot stay on its page makes new entries in all indexes,
-- and the one on words is the dearest of all.
CREATE TABLE page (
    page_no     int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          uuid NOT NULL UNIQUE,
    job_no      int8 NOT NULL,
    tenant_no   int4 NOT NULL,
    url         text NOT NULL,
    title       text,
    status      int4 NOT NULL,
    content_type text NOT NULL,
    depth       int4 NOT NULL,
    content_hash bytea NOT NULL,
    bytes       int8 NOT NULL,
    first_seen_at int8 NOT NULL,
    changed_at  int8 NOT NULL,
    seen_at     int8 NOT NULL,
    etag        text,
    last_modified text
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX page_job ON page (job_no, page_no);
CREATE INDEX page_tenant ON page (tenant_no, page_no);

-- `words` comes folded and taken apart, so that it depends on no locale and no configuration:
-- those of the title first, with weight A, then those of the text. The lexemes `_t1` and `_j7`,
-- which no text can hold, are the tenant and the job: a search passes over the pages of others in
-- the index.
CREATE TABLE page_text (
    page_no     int8 PRIMARY KEY,
    text        text NOT NULL,
    links       text NOT NULL,
    metadata    text NOT NULL,
    fields      text NOT NULL,
    words       tsvector NOT NULL
);
-- New entries wait in a list that is folded in when it is full: a page has hundreds of words, and
-- many pages together touch a word's place once. Every search reads that list, so its length is
-- set here and not left to the server.
CREATE INDEX page_text_words ON page_text USING gin (words)
    WITH (fastupdate = on, gin_pending_list_limit = 4096);

-- How much a job has kept. Has a row if the job has a page. Whoever changes what a job has kept
-- locks it first.
CREATE TABLE page_shelf (
    job_no      int8 PRIMARY KEY,
    bytes       int8 NOT NULL DEFAULT 0,
    pages       int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
