INSERT INTO request (tenant_no, key, fingerprint, begun_at, given_up_at)
VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (tenant_no, key) DO UPDATE
       SET begun_at = max(excluded.begun_at, begun_at + 1), given_up_at = excluded.given_up_at
     WHERE status IS NULL AND fingerprint = excluded.fingerprint
       AND given_up_at <= excluded.begun_at
RETURNING begun_at;
