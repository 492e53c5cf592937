-- Loading the jobs that are due soon.

-- :fragment due_job_row
SELECT s.job_no, s.tenant_no, s.next_at, s.active, s.generation, s.live, s.head_at, s.head_sequence,
       {history_columns}, coalesce(s.placed_at, j.created_at) AS since, s.fired, j.definition
FROM job_state s JOIN job j ON j.job_no = s.job_no

-- :name load_due (shard, until_slot, after_job_no, limit)
{due_job_row}
WHERE s.shard = :shard AND s.slot <= :until_slot AND s.job_no > :after_job_no AND s.active = 1
ORDER BY s.job_no LIMIT :limit

-- :name load_jobs
{due_job_row}
WHERE s.job_no = ?1 AND j.state < {job.cancelled}

-- :name look_ahead_changed
SELECT job_no FROM changed_job WHERE shard = ?1 ORDER BY job_no LIMIT ?2

-- :name look_ahead_take_changed
DELETE FROM changed_job WHERE shard = ?1 AND job_no = ?2
