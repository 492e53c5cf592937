-- Others' events are looked at, and only their places told: up to here all was seen. The first column
-- says whether anything at or before the place asked for is still there.
WITH looked AS (SELECT * FROM event WHERE no > $2 ORDER BY no LIMIT $3)
SELECT EXISTS (SELECT FROM event WHERE no <= $2),
       no, tenant_no IS NULL, kind, job_id, scheduled_at, job_no, sequence, attempt, at, data,
       job_name
FROM looked
WHERE tenant_no = $1 OR tenant_no IS NULL
UNION ALL
SELECT EXISTS (SELECT FROM event WHERE no <= $2),
       max(no), false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM looked
HAVING max(no) IS NOT NULL
ORDER BY no, kind NULLS LAST;
