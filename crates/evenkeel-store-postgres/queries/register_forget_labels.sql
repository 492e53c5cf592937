DELETE FROM job_label WHERE job_no = ANY ($1::int8[])
