-- Found by ready_open_until, longest closed first.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
)
SELECT q.scheduled_at, q.job_no, q.sequence, q.attempt, s.average_us, j.definition
  FROM (SELECT * FROM ready
         WHERE open_until <= (SELECT now FROM clock)
           AND (job_no & 255)::int2 = ANY ($2::int2[])
         ORDER BY open_until LIMIT $3) AS q
  JOIN job_state s USING (job_no) JOIN job j USING (job_no);
