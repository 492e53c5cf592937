INSERT INTO dead_letter (job_no, scheduled_at, sequence, attempt, tenant_no, died_at, reason, status,
                         error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT DO NOTHING
