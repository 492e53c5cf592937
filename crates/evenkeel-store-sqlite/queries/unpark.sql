UPDATE ready SET pool = home_pool, home_pool = NULL, parked_max = NULL
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4
  AND home_pool IS NOT NULL
