-- The lock makes an attempt say its last before it ends, or nothing any more. What is not said
-- stays, unless it was said under another fence.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), running AS MATERIALIZED (
    SELECT d.*
      FROM unnest($3::int8[], $4::int8[], $5::int4[], $6::int2[], $7::int4[], $8::text[], $9::text[],
                  $10::bytea[])
           AS d(job_no, scheduled_at, sequence, attempt, fence, progress, log, checkpoint)
      JOIN run r USING (scheduled_at, job_no, sequence, attempt)
     WHERE r.node_no = $2 AND r.fence = d.fence AND r.status = 1
       FOR NO KEY UPDATE OF r
), said AS (
    INSERT INTO note AS n (scheduled_at, job_no, sequence, attempt, fence, saved_at, progress, log)
    SELECT scheduled_at, job_no, sequence, attempt, fence, (SELECT now FROM clock), progress, log
      FROM running WHERE progress IS NOT NULL OR log IS NOT NULL
        ON CONFLICT (scheduled_at, job_no, sequence, attempt) DO UPDATE
       SET fence = excluded.fence, saved_at = excluded.saved_at,
           progress = coalesce(excluded.progress,
                               CASE WHEN n.fence = excluded.fence THEN n.progress END),
           log = coalesce(excluded.log, CASE WHEN n.fence = excluded.fence THEN n.log END)
), saved AS (
    INSERT INTO checkpoint (scheduled_at, job_no, sequence, saved_at, data)
    SELECT scheduled_at, job_no, sequence, (SELECT now FROM clock), checkpoint
      FROM running WHERE checkpoint IS NOT NULL
        ON CONFLICT (scheduled_at, job_no, sequence) DO UPDATE
       SET saved_at = excluded.saved_at, data = excluded.data
)
SELECT scheduled_at, job_no, sequence, attempt FROM running;
