DELETE FROM ready WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND tenant_no = ?4
RETURNING attempt, prev_at, prev_sequence, fence, crashes
