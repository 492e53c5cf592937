SELECT d.job_no, d.taken_at, j.id, j.standing, s.next_at, s.live,
       json_extract(j.definition, '$.schedule.kind') <> 'once' AS recurs,
       EXISTS (SELECT 1 FROM ready r WHERE r.job_no = d.job_no)
           OR EXISTS (SELECT 1 FROM wake w WHERE w.job_no = d.job_no) AS waits
FROM dedup d JOIN job j ON j.job_no = d.job_no JOIN job_state s ON s.job_no = d.job_no
WHERE d.tenant_no = ?1 AND d.key = ?2
