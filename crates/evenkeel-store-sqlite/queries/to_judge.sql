SELECT job_no FROM watch WHERE shard = ?1 AND judge_at <= ?2 LIMIT ?3
