INSERT INTO dedup (tenant_no, key, job_no, taken_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (tenant_no, key) DO UPDATE SET job_no = excluded.job_no, taken_at = excluded.taken_at
