UPDATE watch SET touched = touched + 1, judge_at = 0 WHERE job_no = ?1
