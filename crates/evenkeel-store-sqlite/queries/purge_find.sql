SELECT j.job_no, s.head_at, s.head_sequence, s.good_at, s.failed_at
FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.id = ?2 AND j.tenant_no = ?1 AND j.standing = 3
