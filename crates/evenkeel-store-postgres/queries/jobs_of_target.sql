SELECT job_no, id FROM job
 WHERE tenant_no = $1 AND target_no = $2 AND job_no > $3
 ORDER BY job_no LIMIT $4;
