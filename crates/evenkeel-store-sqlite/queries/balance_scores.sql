-- Hourly balance scores.

-- :name save_score
INSERT INTO balance_score (tenant_no, hour, score, next_score, cost_score, peak, mean, jobs)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING

-- :name scores
SELECT hour, score, next_score, cost_score, peak, mean, jobs FROM balance_score
WHERE tenant_no = ?1 AND hour >= ?2 AND hour < ?3 ORDER BY hour LIMIT ?4
