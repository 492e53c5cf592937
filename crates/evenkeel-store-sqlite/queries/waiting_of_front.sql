-- The first ?3 of the pool in the order of dispatch are looked at, whoever's they are, and no more.
SELECT lane, priority, should_start_by, since, job_no, scheduled_at, sequence, attempt
FROM (
    SELECT lane, priority, should_start_by, since, job_no, scheduled_at, sequence, attempt,
           tenant_no
    FROM ready WHERE pool = ?1
    ORDER BY lane, priority DESC, should_start_by, since, job_no, scheduled_at, sequence, attempt
    LIMIT ?3)
WHERE tenant_no = ?2
ORDER BY lane, priority DESC, should_start_by, since, job_no, scheduled_at, sequence, attempt
LIMIT ?4
