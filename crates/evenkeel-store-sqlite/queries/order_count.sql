UPDATE tenant SET job_count = job_count - ?2, paused = paused + ?3, cancelled = cancelled + ?4
WHERE tenant_no = ?1
