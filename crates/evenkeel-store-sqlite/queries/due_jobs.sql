-- Loading the jobs that are due soon.

-- :name load_due
SELECT s.job_no, s.tenant_no, s.next_at, s.active, s.generation, s.live, s.head_at, s.head_sequence,
       s.failures, s.last_start_at, s.last_end_at, s.last_good_start_at, s.last_good_end_at,
       s.average_us, s.variance, coalesce(s.placed_at, j.created_at) AS since, s.fired, j.definition
FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.shard = ?1 AND s.slot <= ?2 AND s.job_no > ?3 AND s.active = 1
ORDER BY s.job_no LIMIT ?4

-- :name load_jobs
SELECT s.job_no, s.tenant_no, s.next_at, s.active, s.generation, s.live, s.head_at, s.head_sequence,
       s.failures, s.last_start_at, s.last_end_at, s.last_good_start_at, s.last_good_end_at,
       s.average_us, s.variance, coalesce(s.placed_at, j.created_at) AS since, s.fired, j.definition
FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.job_no = ?1 AND j.state < 2

-- :name look_ahead_changed
SELECT job_no FROM changed_job WHERE shard = ?1 ORDER BY job_no LIMIT ?2

-- :name look_ahead_take_changed
DELETE FROM changed_job WHERE shard = ?1 AND job_no = ?2
