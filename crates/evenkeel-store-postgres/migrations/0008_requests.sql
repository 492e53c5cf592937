-- Requests that came with a key, and how they were answered; `status` is NULL while one is under
-- way.
CREATE TABLE request (
    tenant_no   int4 NOT NULL,
    key         text NOT NULL,
    fingerprint bytea NOT NULL,
    begun_at    int8 NOT NULL,
    given_up_at int8 NOT NULL,
    status      int2,
    headers     text,
    body        bytea,
    PRIMARY KEY (tenant_no, key)
);
CREATE INDEX request_age ON request (begun_at);
