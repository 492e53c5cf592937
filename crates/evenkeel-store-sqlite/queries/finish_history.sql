SELECT last_start_at, last_end_at, last_good_start_at, last_good_end_at, failures, average_us,
       variance, watched, by_end, placed_at
FROM job_state WHERE job_no = ?1
