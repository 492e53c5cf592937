WITH changed AS (
    UPDATE job_state
       SET generation = generation + 1, next_at = CASE WHEN $2 THEN $3 ELSE next_at END,
           slot = CASE WHEN NOT active THEN NULL WHEN $2 THEN $4 ELSE slot END
     WHERE job_no = $1
 RETURNING shard, job_no, slot
)
INSERT INTO changed_job (shard, job_no)
SELECT shard, job_no FROM changed WHERE slot <= $5::int8 / 900000000 + 1
    ON CONFLICT DO NOTHING;
