SELECT j.job_no, j.standing, j.definition, s.live
FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.id = ?2 AND j.tenant_no = ?1 AND j.standing <> 3
