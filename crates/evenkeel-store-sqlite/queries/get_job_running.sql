-- The newest attempt of a chain. One that waits for its first worker is passed over, as a record of
-- skipped times is (6): neither is what runs.
SELECT attempt, status, started_at, prev_at, prev_sequence FROM (
    SELECT attempt, status, started_at, prev_at, prev_sequence FROM run
    WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3
    ORDER BY attempt DESC LIMIT 1)
UNION ALL
SELECT attempt, 6, NULL, prev_at, prev_sequence FROM ready
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = 0
  AND NOT EXISTS (SELECT 1 FROM run
                  WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3)
