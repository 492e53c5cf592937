UPDATE watch SET touched = touched + 1, judge_at = ?2, level = ?3, reason = ?4, error_at = ?5, since = ?6
WHERE job_no = ?1
