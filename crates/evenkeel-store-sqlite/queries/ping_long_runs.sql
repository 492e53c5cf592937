INSERT INTO long_run (node_no, scheduled_at, job_no, sequence, attempt, fence, started_at,
                      last_ping_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING
