SELECT s.job_no, s.tenant_no, CASE WHEN s.active THEN s.next_at END AS next_at, s.generation, s.live,
       s.head_at, s.head_sequence, s.average_us, j.definition
  FROM unnest($1::int8[]) AS d(job_no) JOIN job_state s USING (job_no) JOIN job j USING (job_no)
 WHERE NOT s.deleted;
