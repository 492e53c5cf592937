-- The lowest from $2 on that nobody chose.
SELECT CASE WHEN NOT EXISTS (SELECT FROM target WHERE tenant_no = $1 AND number = $2) THEN $2::int8
       ELSE (SELECT t.number + 1 FROM target t
              WHERE t.tenant_no = $1 AND t.number >= $2
                AND NOT EXISTS (SELECT FROM target n
                                 WHERE n.tenant_no = $1 AND n.number = t.number + 1)
              ORDER BY t.number LIMIT 1) END;
