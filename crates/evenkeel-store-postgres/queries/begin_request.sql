WITH clock AS (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
)
INSERT INTO request (tenant_no, key, fingerprint, begun_at, given_up_at)
SELECT $2, $3, $4, now, now + $5::int8 FROM clock
    ON CONFLICT (tenant_no, key) DO UPDATE
       SET begun_at = greatest(excluded.begun_at, request.begun_at + 1),
           given_up_at = excluded.given_up_at
     WHERE request.status IS NULL AND request.fingerprint = excluded.fingerprint
       AND request.given_up_at <= excluded.begun_at
RETURNING begun_at;
