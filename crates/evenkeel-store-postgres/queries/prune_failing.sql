DELETE FROM failing WHERE job_no = ANY ($1::int8[]);
