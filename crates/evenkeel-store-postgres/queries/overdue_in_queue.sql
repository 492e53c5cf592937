-- The next $7 of the queue in the order of their keys are looked at: how many there were, which was
-- the last, and which jobs of them are wanted.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), looked AS MATERIALIZED (
    SELECT scheduled_at, job_no, sequence, attempt, should_start_by FROM ready
     WHERE (scheduled_at, job_no, sequence, attempt) > ($3::int8, $4::int8, $5::int4, $6::int2)
     ORDER BY scheduled_at, job_no, sequence, attempt
     LIMIT $7
)
SELECT l.scheduled_at, l.job_no, l.sequence, l.attempt, (SELECT count(*) FROM looked),
       ARRAY(SELECT DISTINCT o.job_no FROM looked o
              WHERE o.should_start_by < (SELECT now FROM clock)
                AND (o.job_no & 255)::int2 = ANY ($2::int2[])
                -- not a join, which a plan made for an empty queue might do the wrong way round
                AND (SELECT NOT s.watched FROM job_state s WHERE s.job_no = o.job_no))
  FROM looked l
 ORDER BY l.scheduled_at DESC, l.job_no DESC, l.sequence DESC, l.attempt DESC
 LIMIT 1;
