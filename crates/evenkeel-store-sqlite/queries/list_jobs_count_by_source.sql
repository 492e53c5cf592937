SELECT count(*) FROM (
    SELECT 1 FROM job
    WHERE tenant_no = ?1 AND standing <> 3 AND source_id = ?3
      AND (?2 IS NULL OR (name >= ?2 AND name < ?2 || char(1114111)))
    LIMIT ?4)
