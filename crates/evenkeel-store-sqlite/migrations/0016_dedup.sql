-- Who took a key last, of jobs that are not to be there twice. Whether that still counts is looked at
-- when somebody else wants the key: claims and ends of runs write nothing here.
CREATE TABLE dedup (
    tenant_no    INTEGER NOT NULL,
    -- 16 bytes of a hash of the executor and the text
    key          BLOB NOT NULL,
    job_no       INTEGER NOT NULL,
    taken_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant_no, key)
) STRICT, WITHOUT ROWID;
ALTER TABLE ready DROP COLUMN dedup_key;
