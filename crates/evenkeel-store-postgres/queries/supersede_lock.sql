SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8),
       s.job_no, s.live, s.head_at, s.head_sequence
  FROM unnest($2::int8[]) AS d(job_no) JOIN job_state s USING (job_no)
   FOR NO KEY UPDATE OF s;
