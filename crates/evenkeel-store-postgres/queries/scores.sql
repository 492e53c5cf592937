SELECT hour, score, next_score, cost_score, peak, mean, jobs
  FROM balance_score
 WHERE tenant_no = $1 AND hour >= $2 AND hour < $3
 ORDER BY hour LIMIT $4;
