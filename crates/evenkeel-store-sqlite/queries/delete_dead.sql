DELETE FROM dead_letter WHERE tenant_no = ?1 AND job_no = ?2 AND scheduled_at = ?3 AND sequence = ?4
