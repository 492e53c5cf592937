-- Hourly balance scores.

-- :name save_score (tenant_no, hour, score, next_score, cost_score, peak, mean, jobs)
INSERT INTO balance_score (tenant_no, hour, score, next_score, cost_score, peak, mean, jobs)
VALUES (:tenant_no, :hour, :score, :next_score, :cost_score, :peak, :mean, :jobs)
ON CONFLICT DO NOTHING

-- :name scores (tenant_no, from, until, limit)
SELECT hour, score, next_score, cost_score, peak, mean, jobs FROM balance_score
WHERE tenant_no = :tenant_no AND hour >= :from AND hour < :until ORDER BY hour LIMIT :limit
