-- What crawls keep. `page` is written whenever a page is seen, `page_text` only when its content
-- has changed: a second crawl of an unchanged site touches small rows alone.
CREATE TABLE page (
    page_no     INTEGER PRIMARY KEY AUTOINCREMENT,
    id          BLOB NOT NULL UNIQUE,
    job_no      INTEGER NOT NULL,
    tenant_no   INTEGER NOT NULL,
    url         TEXT NOT NULL,
    title       TEXT,
    status      INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    depth       INTEGER NOT NULL,
    content_hash BLOB NOT NULL,
    bytes       INTEGER NOT NULL,
    first_seen_at INTEGER NOT NULL,
    changed_at  INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    etag        TEXT,
    last_modified TEXT
) STRICT;
CREATE INDEX page_job ON page (job_no, page_no);
CREATE INDEX page_tenant ON page (tenant_no, page_no);

CREATE TABLE page_text (
    page_no     INTEGER PRIMARY KEY,
    text        TEXT NOT NULL,
    links       TEXT NOT NULL,
    metadata    TEXT NOT NULL,
    fields      TEXT NOT NULL
) STRICT;

-- Where words stand. They come folded, with spaces between them: `ascii` parts nothing else. The
-- texts are not kept a second time (content=''), and what goes is only marked as gone, so that
-- the writer need not read the old text again. No trigger fills it, for SQL cannot fold; so none
-- empties it either, and everything that happens to it stands in the statements.
--
-- `home` holds the tenant and the job (`t1 j7`), so that a search passes over the pages of others
-- in the index.
CREATE VIRTUAL TABLE page_words USING fts5 (
    title, text, home, tokenize = 'ascii', content = '', contentless_delete = 1
);
-- What is marked as gone leaves with the next ordinary merge of its part of the index. Merging for
-- its sake, as by default, held the writer up for seconds when a job's pages went.
INSERT INTO page_words (page_words, rank) VALUES ('deletemerge', 0);

-- How much a job has kept. Has a row if the job has a page.
CREATE TABLE page_shelf (
    job_no      INTEGER PRIMARY KEY,
    bytes       INTEGER NOT NULL DEFAULT 0,
    pages       INTEGER NOT NULL DEFAULT 0
) STRICT;
