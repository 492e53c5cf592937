SELECT coalesce(s.bytes, 0) FROM job j LEFT JOIN page_shelf s ON s.job_no = j.job_no
WHERE j.job_no = ?1 AND j.tenant_no = ?2 AND j.standing <> 3
