SELECT definition,
       (SELECT data FROM checkpoint c
        WHERE c.scheduled_at = ?1 AND c.job_no = ?2 AND c.sequence = ?3)
FROM job WHERE job_no = ?2
