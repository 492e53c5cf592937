SELECT id, content_hash, bytes FROM page WHERE id = ANY($1) AND job_no = $2;
