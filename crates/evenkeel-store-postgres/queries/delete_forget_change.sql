DELETE FROM changed_job WHERE shard = ($1::int8 & 255)::int2 AND job_no = $1;
