-- The attempts of a chain. One that waits for its first worker has its link in the queue.
SELECT attempt, status, node_no, prev_at, prev_sequence FROM run
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3
UNION ALL
SELECT attempt, 0, NULL, prev_at, prev_sequence FROM ready
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3
