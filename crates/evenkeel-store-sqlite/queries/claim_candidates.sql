SELECT lane, priority, should_start_by, ready_at, scheduled_at, job_no, sequence, attempt,
       tenant_no, fence, crashes, prev_at, prev_sequence
FROM ready WHERE pool = ?1 AND lane = ?2
ORDER BY priority DESC, should_start_by, ready_at, job_no LIMIT ?3
