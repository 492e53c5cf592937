-- Named secrets. Values are encrypted with a key that is not in the database; the tenant and the
-- name are part of what is authenticated, so that no row can take the place of another.
CREATE TABLE secret (
    tenant_no   int4 NOT NULL REFERENCES tenant,
    name        text COLLATE "C" NOT NULL,
    version     int4 NOT NULL,
    key_id      text NOT NULL,
    nonce       bytea NOT NULL,
    ciphertext  bytea NOT NULL,
    created_at  int8 NOT NULL,
    created_by  text NOT NULL,
    updated_at  int8 NOT NULL,
    updated_by  text NOT NULL,
    PRIMARY KEY (tenant_no, name)
);
