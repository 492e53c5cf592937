-- Out of the waiting rooms, each into its own pool, or into another waiting room. Who has left
-- meanwhile, or is just being taken, is let be.
WITH free AS MATERIALIZED (
    SELECT q.ctid, d.room, d.most
      FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::int2[], $5::text[], $6::text[], $7::int4[])
           AS d(scheduled_at, job_no, sequence, attempt, was_in, room, most)
     CROSS JOIN LATERAL (
           SELECT q.ctid FROM ready q
            WHERE q.scheduled_at = d.scheduled_at AND q.job_no = d.job_no
              AND q.sequence = d.sequence AND q.attempt = d.attempt
              AND q.home_pool IS NOT NULL AND q.pool = d.was_in
              FOR UPDATE SKIP LOCKED) AS q
), moved AS (
    UPDATE ready q
       SET pool = coalesce(f.room, q.home_pool),
           home_pool = CASE WHEN f.room IS NOT NULL THEN q.home_pool END, parked_max = f.most
      FROM free f WHERE q.ctid = f.ctid
    RETURNING f.room
)
SELECT count(*) FILTER (WHERE room IS NULL) FROM moved;
