-- Every job that has pages has a shelf, and shelves are few.
SELECT s.job_no FROM page_shelf s JOIN job j USING (job_no)
 WHERE j.standing = 3 AND s.job_no > $1 ORDER BY s.job_no LIMIT $2;
