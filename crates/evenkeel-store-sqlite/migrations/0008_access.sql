-- Keys of programs: only a hash of each is kept. One that was taken back has no name any more.
CREATE TABLE api_key (
    id          BLOB PRIMARY KEY,
    tenant_no   INTEGER NOT NULL REFERENCES tenant,
    name        TEXT NOT NULL,
    role        INTEGER NOT NULL,
    hash        BLOB NOT NULL UNIQUE,
    created_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    revoked_at  INTEGER,
    last_used_at INTEGER
) STRICT;
CREATE UNIQUE INDEX api_key_name ON api_key (tenant_no, name) WHERE revoked_at IS NULL;
CREATE INDEX api_key_tenant ON api_key (tenant_no, id);

-- What was done and what was refused. Tenant 0 is nobody's: who asked is not known.
CREATE TABLE audit (
    no          INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    tenant_no   INTEGER NOT NULL,
    subject     TEXT NOT NULL,
    role        INTEGER,
    action      TEXT NOT NULL,
    target      TEXT,
    status      INTEGER NOT NULL,
    denied      INTEGER NOT NULL,
    detail      TEXT,
    remote      TEXT,
    request_id  TEXT NOT NULL
) STRICT;
CREATE INDEX audit_place ON audit (tenant_no, at, no);
