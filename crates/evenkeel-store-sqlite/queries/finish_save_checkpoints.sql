INSERT INTO checkpoint (scheduled_at, job_no, sequence, saved_at, data)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET saved_at = excluded.saved_at, data = excluded.data
