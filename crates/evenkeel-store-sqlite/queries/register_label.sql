INSERT INTO job_label (tenant_no, key, value, job_no) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO NOTHING
