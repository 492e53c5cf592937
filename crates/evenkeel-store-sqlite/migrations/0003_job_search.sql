-- The search index of jobs. `grams` holds the numbers of three-character parts of a job's text as
-- eight hexadecimal digits each, so the tokenizer `ascii` only splits at spaces. A search needs to
-- know only which jobs have a gram (detail = none), because the program checks the text of the jobs
-- that it finds. The index stores no copy of the grams (content = ''), and a deleted entry is only
-- marked.
CREATE VIRTUAL TABLE job_grams USING fts5 (
    grams, tokenize = 'ascii', content = '', contentless_delete = 1, detail = none
);
-- Marked entries disappear with the next ordinary merge of their segment.
INSERT INTO job_grams (job_grams, rank) VALUES ('deletemerge', 0);

-- Jobs that are not in the search index yet, or whose text has changed. Registering a batch of jobs
-- adds one row. AUTOINCREMENT prevents the reuse of `entry_no`, because an entry is read before the
-- transaction that deletes it.
CREATE TABLE unindexed_job (
    entry_no    INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_no   INTEGER,
    -- numbers of jobs as a JSON array; NULL for all jobs of the target, or all jobs of the store
    jobs        TEXT,
    target_no   INTEGER,
    -- jobs up to this number are indexed already, if `jobs` is NULL
    after_no    INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO unindexed_job (after_no) SELECT 0 WHERE EXISTS (SELECT 1 FROM job);
