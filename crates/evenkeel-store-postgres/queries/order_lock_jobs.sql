SELECT job_no, id FROM job
 WHERE id = ANY ($1::uuid[]) AND tenant_no = $2 AND standing <> 3
 ORDER BY job_no FOR NO KEY UPDATE;
