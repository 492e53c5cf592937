-- Which jobs a page looks at: the first and the last, and how many. Only an index is read.
SELECT min(job_no), max(job_no), count(*)
  FROM (SELECT job_no FROM job
         WHERE tenant_no = $1 AND standing <> 3 AND job_no > $2 ORDER BY job_no LIMIT $3) AS j;
