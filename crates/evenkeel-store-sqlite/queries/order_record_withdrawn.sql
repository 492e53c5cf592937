-- An attempt that was handed back has a row already; one that never started gets its first.
INSERT INTO run (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence,
                 prev_at, prev_sequence, number, finished_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?9, 0, ?6, ?7,
        (SELECT executions FROM job_state WHERE job_no = ?2), ?8)
ON CONFLICT DO UPDATE SET status = excluded.status, finished_at = excluded.finished_at
