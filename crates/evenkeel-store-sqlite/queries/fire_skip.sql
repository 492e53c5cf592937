-- It is no attempt, but its number lets it grow old with them.
INSERT INTO run (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence,
                 prev_at, prev_sequence, number, finished_at, skipped_to, skipped_count, skip_reason)
VALUES (?1, ?2, 0, 0, ?3, 6, 0, ?4, ?5,
        -- The job is advanced already: an attempt that was started with this is not counted yet.
        (SELECT executions FROM job_state WHERE job_no = ?2) - ?6, ?7, ?8, ?9, ?10)
