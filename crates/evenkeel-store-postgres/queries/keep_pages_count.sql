UPDATE page_shelf SET bytes = bytes + $2, pages = pages + $3 WHERE job_no = $1;
