INSERT INTO watch (job_no, tenant_no, shard, judge_at, touched)
SELECT s.job_no, s.tenant_no, s.shard, 0, random() & 1073741823
FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.job_no = ?1 AND j.standing < 2
ON CONFLICT DO UPDATE SET touched = touched + 1, judge_at = 0
