INSERT INTO failure (tenant_no, fingerprint, count, first_at, last_at, scheduled_at, job_no, sequence,
                     attempt, error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT (tenant_no, fingerprint) DO UPDATE
SET count = count + excluded.count,
    scheduled_at = iif(excluded.last_at >= last_at, excluded.scheduled_at, scheduled_at),
    job_no = iif(excluded.last_at >= last_at, excluded.job_no, job_no),
    sequence = iif(excluded.last_at >= last_at, excluded.sequence, sequence),
    attempt = iif(excluded.last_at >= last_at, excluded.attempt, attempt),
    error = iif(excluded.last_at >= last_at, excluded.error, error),
    last_at = max(last_at, excluded.last_at)
