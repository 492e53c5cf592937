INSERT INTO rhythm (tenant_no, key, rhythm, jobs, cost_us) VALUES (?1, ?2, ?5, ?3, ?4)
ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs, cost_us = cost_us + excluded.cost_us
