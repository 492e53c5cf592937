-- Of the first rows only, so that it stays quick however many there are.
SELECT count(*), coalesce(sum(tenant_no = ?1), 0) FROM (SELECT tenant_no FROM run LIMIT ?2)
