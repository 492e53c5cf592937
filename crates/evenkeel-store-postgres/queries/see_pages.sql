UPDATE page
   SET seen_at = coalesce($3::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
 WHERE id = ANY($1) AND job_no = $2;
