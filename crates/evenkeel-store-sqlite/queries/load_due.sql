SELECT s.job_no, s.tenant_no, s.next_at, s.active, s.generation, s.live, s.head_at, s.head_sequence,
       s.average_us, j.definition
FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.shard = ?1 AND s.slot <= ?2 AND s.job_no > ?3 AND s.active = 1
ORDER BY s.job_no LIMIT ?4
