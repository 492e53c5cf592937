-- Into the waiting rooms. What this transaction has not locked itself, somebody else may be taking.
WITH free AS MATERIALIZED (
    SELECT q.ctid, d.room, d.most
      FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::int2[], $5::text[], $6::int4[])
           AS d(scheduled_at, job_no, sequence, attempt, room, most)
     CROSS JOIN LATERAL (
           SELECT q.ctid FROM ready q
            WHERE q.scheduled_at = d.scheduled_at AND q.job_no = d.job_no
              AND q.sequence = d.sequence AND q.attempt = d.attempt AND q.home_pool IS NULL
              FOR UPDATE SKIP LOCKED) AS q
)
UPDATE ready q SET home_pool = q.pool, pool = f.room, parked_max = f.most
  FROM free f WHERE q.ctid = f.ctid;
