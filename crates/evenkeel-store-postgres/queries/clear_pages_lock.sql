-- One that somebody else clears, or keeps pages on, is left to them.
SELECT FROM page_shelf WHERE job_no = $1 FOR UPDATE SKIP LOCKED;
