WITH before AS MATERIALIZED (
    SELECT head_at, head_sequence FROM job_state WHERE job_no = $1 FOR NO KEY UPDATE
), closed AS (
    UPDATE job_state
       SET live = greatest(live - 1, 0),
           head_at = CASE WHEN $2 THEN $3 ELSE head_at END,
           head_sequence = CASE WHEN $2 THEN $4 ELSE head_sequence END
     WHERE job_no = $1
)
SELECT head_at, head_sequence,
       coalesce($5::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
  FROM before;
