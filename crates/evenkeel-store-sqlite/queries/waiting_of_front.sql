-- The first ?3 of the pool by priority are looked at, whoever's they are, and no more.
SELECT lane, priority, rise, should_start_by, since, job_no, scheduled_at, sequence, attempt
FROM (
    SELECT lane, priority, rise, should_start_by, since, job_no, scheduled_at, sequence, attempt,
           tenant_no
    FROM ready WHERE pool = ?1
    ORDER BY lane, priority DESC, should_start_by, since, job_no, scheduled_at, sequence, attempt
    LIMIT ?3)
WHERE tenant_no = ?2
