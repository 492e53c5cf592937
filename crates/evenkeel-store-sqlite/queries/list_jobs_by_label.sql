SELECT job_no FROM job_label
WHERE tenant_no = ?1 AND key = ?9 ->> '$[0][0]' AND value = ?9 ->> '$[0][1]' AND job_no > ?15
ORDER BY job_no ASC LIMIT ?18 OFFSET ?19
