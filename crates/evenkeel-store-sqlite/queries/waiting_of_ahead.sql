-- The first of the pool in the order of dispatch are looked at, and no more.
SELECT count(*) FROM (
    SELECT lane, priority, should_start_by, ready_at, job_no, scheduled_at, sequence, attempt
    FROM ready WHERE pool = ?1
    ORDER BY lane, priority DESC, should_start_by, ready_at, job_no, scheduled_at, sequence, attempt
    LIMIT ?10)
WHERE (lane, -priority, should_start_by, ready_at, job_no, scheduled_at, sequence, attempt)
    < (?2, -?3, ?4, ?5, ?6, ?7, ?8, ?9)
