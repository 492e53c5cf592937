-- A part of the queue, in the order of its key. Whether a job is watched is looked up for those that
-- are overdue; not a join, which a plan made for an empty queue might do the wrong way round.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), seen AS MATERIALIZED (
    SELECT scheduled_at, job_no, sequence, attempt, should_start_by
      FROM ready
     WHERE (scheduled_at, job_no, sequence, attempt) > ($3::int8, $4::int8, $5::int4, $6::int2)
     ORDER BY scheduled_at, job_no, sequence, attempt LIMIT $7
)
SELECT scheduled_at, job_no, sequence, attempt,
       CASE WHEN should_start_by < (SELECT now FROM clock)
             AND (job_no & 255)::int2 = ANY ($2::int2[])
            THEN coalesce((SELECT NOT s.watched FROM job_state s WHERE s.job_no = seen.job_no),
                          false)
            ELSE false END
  FROM seen ORDER BY scheduled_at, job_no, sequence, attempt;
