DELETE FROM page_shelf WHERE job_no = $1;
