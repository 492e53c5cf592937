UPDATE ready SET home_pool = pool, pool = ?5, parked_max = ?6
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4 AND home_pool IS NULL
