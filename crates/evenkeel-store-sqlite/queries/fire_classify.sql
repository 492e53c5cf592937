-- Is the job still as decided on? And if so, does a retry of it wait for its time?
SELECT EXISTS (SELECT 1 FROM wake w WHERE w.job_no = s.job_no AND w.attempt > 0)
FROM job_state s
WHERE s.job_no = ?1 AND s.generation = ?2 AND s.next_at = ?3 AND s.active = 1
  AND s.head_at IS ?4 AND s.head_sequence IS ?5
