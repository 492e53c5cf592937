-- One that was handed back may have its place still.
INSERT INTO place (key, scheduled_at, job_no, sequence, attempt) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO NOTHING
