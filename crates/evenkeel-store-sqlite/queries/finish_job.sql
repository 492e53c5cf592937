UPDATE job_state
SET live = max(live - ?2, 0), last_status = ?3, last_start_at = ?4, last_end_at = ?5,
    last_good_start_at = ?6, last_good_end_at = ?7, failures = ?8, average_us = ?9, variance = ?10,
    good_at = coalesce(?11, good_at), failed_at = coalesce(?12, failed_at),
    good_runs = good_runs + (?11 IS NOT NULL), bad_runs = bad_runs + (?12 IS NOT NULL)
WHERE job_no = ?1
