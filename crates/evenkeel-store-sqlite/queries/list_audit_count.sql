-- Looks at a bounded number of entries, in no order: that would sort them all.
SELECT count(*) FILTER (WHERE (?5 IS NULL OR subject = ?5) AND (?6 IS NULL OR target = ?6)
                          AND (?7 IS NULL OR denied = ?7)),
       count(*)
FROM (SELECT subject, target, denied FROM audit
      WHERE tenant_no IN (?1, ?2) AND at < ?3 AND at >= ?4
      LIMIT ?8) looked_at
