-- Out of the waiting rooms, each into its own pool.
WITH free AS MATERIALIZED (
    SELECT q.ctid
      FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::int2[])
           AS d(scheduled_at, job_no, sequence, attempt)
     CROSS JOIN LATERAL (
           SELECT q.ctid FROM ready q
            WHERE q.scheduled_at = d.scheduled_at AND q.job_no = d.job_no
              AND q.sequence = d.sequence AND q.attempt = d.attempt AND q.home_pool IS NOT NULL
              FOR UPDATE SKIP LOCKED) AS q
)
UPDATE ready q SET pool = q.home_pool, home_pool = NULL, parked_max = NULL
  FROM free f WHERE q.ctid = f.ctid;
