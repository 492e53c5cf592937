-- The first ?3 of the lane by what they have waited are looked at, of those that may have gained by it.
SELECT lane, priority, rise, should_start_by, since, job_no, scheduled_at, sequence, attempt
FROM (
    SELECT lane, priority, rise, should_start_by, since, job_no, scheduled_at, sequence, attempt,
           tenant_no
    FROM ready WHERE pool = ?1 AND lane = ?4 AND rise < ?5
    ORDER BY rise, should_start_by, since, job_no LIMIT ?3)
WHERE tenant_no = ?2
