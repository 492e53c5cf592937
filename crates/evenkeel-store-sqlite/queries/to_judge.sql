SELECT judge_at, job_no FROM watch WHERE shard = ?1 AND judge_at <= ?2
ORDER BY judge_at, job_no LIMIT ?3
