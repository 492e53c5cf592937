UPDATE job
   SET name = CASE WHEN $3 THEN $4 ELSE name END,
       configuration = CASE WHEN $3 THEN $5 ELSE configuration END,
       source_id = CASE WHEN $3 THEN $6 ELSE source_id END,
       about = CASE WHEN $3 THEN $7 ELSE about END, definition = coalesce($8, definition),
       updated_at = coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
 WHERE job_no = $2
RETURNING updated_at;
