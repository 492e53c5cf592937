SELECT id, name, about ->> '$.source_name' FROM job WHERE job_no = ?1;
