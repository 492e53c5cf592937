SELECT EXISTS (SELECT 1 FROM run WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3)
    OR EXISTS (SELECT 1 FROM ready WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3)
    OR EXISTS (SELECT 1 FROM wake WHERE job_no = ?2 AND scheduled_at = ?1 AND sequence = ?3)
