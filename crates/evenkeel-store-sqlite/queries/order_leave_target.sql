-- A job is about to name another target, or none: what it ended well for this one stays with it.
UPDATE target
SET last_success_at = max(coalesce(target.last_success_at, 0), s.last_good_end_at)
FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.job_no = ?1 AND target.tenant_no = j.tenant_no AND target.number = j.target_no
  AND s.last_good_end_at > coalesce(j.target_since, 0)
