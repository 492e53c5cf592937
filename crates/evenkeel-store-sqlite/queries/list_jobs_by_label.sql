SELECT job_no FROM job_label
WHERE tenant_no = ?1 AND key = ?9 ->> '$[0][0]' AND value = ?9 ->> '$[0][1]' AND job_no > ?16
ORDER BY job_no ASC LIMIT ?19 OFFSET ?20
