-- Keys of programs: only a hash of each is kept. One that was taken back has no name any more.
CREATE TABLE api_key (
    id          uuid PRIMARY KEY,
    tenant_no   int4 NOT NULL REFERENCES tenant,
    name        text NOT NULL,
    role        int2 NOT NULL,
    hash        bytea NOT NULL UNIQUE,
    created_by  text NOT NULL,
    created_at  int8 NOT NULL,
    expires_at  int8,
    revoked_at  int8,
    last_used_at int8
);
CREATE UNIQUE INDEX api_key_name ON api_key (tenant_no, name) WHERE revoked_at IS NULL;
CREATE INDEX api_key_tenant ON api_key (tenant_no, id);

-- What was done and what was refused. Tenant 0 is nobody's: who asked is not known.
CREATE TABLE audit (
    no          int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          int8 NOT NULL,
    tenant_no   int4 NOT NULL,
    subject     text NOT NULL,
    role        int2,
    action      text NOT NULL,
    target      text,
    status      int2 NOT NULL,
    denied      bool NOT NULL,
    detail      text,
    remote      text,
    request_id  text NOT NULL
);
CREATE INDEX audit_place ON audit (tenant_no, at, no);
