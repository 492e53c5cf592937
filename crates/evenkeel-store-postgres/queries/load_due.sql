SELECT s.job_no, s.tenant_no, CASE WHEN s.active THEN s.next_at END AS next_at, s.generation, s.live,
       s.head_at, s.head_sequence, s.average_us, j.definition
  FROM job_state s JOIN job j USING (job_no)
 WHERE s.shard = $1 AND s.slot <= $2 AND s.active AND s.job_no > $3
 ORDER BY s.job_no LIMIT $4;
