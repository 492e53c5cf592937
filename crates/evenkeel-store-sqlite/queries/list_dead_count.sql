SELECT count(*)
FROM (SELECT 1 FROM dead_letter d
      WHERE d.tenant_no = ?1
        AND (?2 IS NULL OR d.job_no = (SELECT job_no FROM job WHERE id = ?2))
        AND (?3 IS NULL OR (d.redriven_at IS NOT NULL) = ?3)
      LIMIT ?4)
