-- Every job that has pages has a shelf, and shelves are few. One that somebody else clears is
-- left to them.
SELECT s.job_no FROM page_shelf s JOIN job j USING (job_no)
 WHERE j.standing = 3 ORDER BY s.job_no LIMIT 1
   FOR UPDATE OF s SKIP LOCKED;
