UPDATE target
   SET source_id = $3, name = $4, url = $5, generation = generation + 1,
       updated_at = coalesce($6::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
 WHERE tenant_no = $1 AND number = $2;
