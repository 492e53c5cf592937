DELETE FROM changed_job c USING unnest($1::int8[]) AS d(job_no)
 WHERE c.shard = (d.job_no & 255)::int2 AND c.job_no = d.job_no;
