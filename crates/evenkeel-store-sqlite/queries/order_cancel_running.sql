INSERT INTO cancellation (node_no, scheduled_at, job_no, sequence, attempt, superseded)
VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING
