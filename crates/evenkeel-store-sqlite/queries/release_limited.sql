-- Into its own pool, or into another waiting room.
UPDATE ready
SET pool = coalesce(?6, home_pool), home_pool = CASE WHEN ?6 IS NOT NULL THEN home_pool END,
    parked_max = ?7
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4
  AND home_pool IS NOT NULL AND pool = ?5
