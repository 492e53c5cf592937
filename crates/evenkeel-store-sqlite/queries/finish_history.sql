SELECT last_start_at, last_end_at, last_good_start_at, last_good_end_at, failures, average_us,
       variance, watched, by_end
FROM job_state WHERE job_no = ?1
