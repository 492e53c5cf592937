-- Named secrets. Values are encrypted with a key that is not in the database; the tenant and the
-- name are part of what is authenticated, so that no row can take the place of another.
CREATE TABLE secret (
    tenant_no   INTEGER NOT NULL REFERENCES tenant,
    name        TEXT NOT NULL,
    version     INTEGER NOT NULL,
    key_id      TEXT NOT NULL,
    nonce       BLOB NOT NULL,
    ciphertext  BLOB NOT NULL,
    created_at  INTEGER NOT NULL,
    created_by  TEXT NOT NULL,
    updated_at  INTEGER NOT NULL,
    updated_by  TEXT NOT NULL,
    PRIMARY KEY (tenant_no, name)
) STRICT;
