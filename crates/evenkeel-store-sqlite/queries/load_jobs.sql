SELECT s.job_no, s.tenant_no, s.next_at, s.active, s.generation, s.live, s.head_at, s.head_sequence,
       s.average_us, j.definition
FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.job_no = ?1 AND j.standing <> 3
