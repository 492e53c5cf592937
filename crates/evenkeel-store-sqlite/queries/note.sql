-- What is not said stays, unless it was said under another fence.
INSERT INTO note (scheduled_at, job_no, sequence, attempt, fence, saved_at, progress, log)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO UPDATE
SET fence = excluded.fence, saved_at = excluded.saved_at,
    progress = coalesce(excluded.progress, iif(fence = excluded.fence, progress, NULL)),
    log = coalesce(excluded.log, iif(fence = excluded.fence, log, NULL))
