INSERT INTO balance_score (tenant_no, hour, score, next_score, cost_score, peak, mean, jobs)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING
