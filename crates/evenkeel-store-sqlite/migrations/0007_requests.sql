-- Requests that came with a key, and how they were answered; `status` is NULL while one is under
-- way.
CREATE TABLE request (
    tenant_no   INTEGER NOT NULL,
    key         TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    begun_at    INTEGER NOT NULL,
    given_up_at INTEGER NOT NULL,
    status      INTEGER,
    headers     TEXT,
    body        BLOB
) STRICT;
CREATE UNIQUE INDEX request_key ON request (tenant_no, key);
CREATE INDEX request_age ON request (begun_at);
