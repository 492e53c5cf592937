-- Times of a job that were skipped while the end of a run could not be stored: they are found along
-- the links from each chain to the one before, back to the moment from which on that is so. A first
-- attempt that was never claimed has its link in the queue.
WITH RECURSIVE chain(at, sequence, depth) AS (
    SELECT head_at, head_sequence, 0 FROM job_state WHERE job_no = ?1 AND head_at >= ?2
    UNION ALL
    SELECT p.prev_at, p.prev_sequence, c.depth + 1
      FROM chain c JOIN run p ON p.scheduled_at = c.at AND p.job_no = ?1
                             AND p.sequence = c.sequence AND p.attempt = 0
     WHERE p.prev_at >= ?2 AND c.depth < 1000
    UNION ALL
    SELECT q.prev_at, q.prev_sequence, c.depth + 1
      FROM chain c JOIN ready q ON q.scheduled_at = c.at AND q.job_no = ?1
                               AND q.sequence = c.sequence AND q.attempt = 0
     WHERE q.prev_at >= ?2 AND c.depth < 1000
)
UPDATE run SET skip_reason = ?4
 WHERE job_no = ?1 AND sequence = 0 AND attempt = 0 AND status = 6 AND skip_reason = ?3
   AND scheduled_at IN (SELECT at FROM chain WHERE sequence = 0)
