-- The queue is as long as workers take in a moment, so all of it may be looked at.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
)
SELECT DISTINCT job_no
  FROM (SELECT q.job_no FROM ready q
         WHERE q.should_start_by < (SELECT now FROM clock)
           AND (q.job_no & 255)::int2 = ANY ($2::int2[])
           -- not a join, which a plan made for an empty queue might do the wrong way round
           AND (SELECT NOT s.watched FROM job_state s WHERE s.job_no = q.job_no)
         LIMIT $3) AS overdue;
