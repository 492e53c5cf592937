SELECT s.job_no FROM page_shelf s JOIN job j ON j.job_no = s.job_no
WHERE j.standing = 3 ORDER BY s.job_no LIMIT ?1
