-- The first by priority.
SELECT priority, rise, own_priority, should_start_by, since, scheduled_at, job_no, sequence,
       attempt, tenant_no, fence, crashes, prev_at, prev_sequence, limit_key, limit_max
FROM ready
WHERE pool = ?1 AND lane = ?2
  AND (open_from IS NULL OR open_from <= ?4) AND (open_until IS NULL OR open_until > ?4)
  AND (forbidden_nodes IS NULL
       OR NOT EXISTS (SELECT 1 FROM json_each(forbidden_nodes) WHERE value = ?5))
ORDER BY priority DESC, should_start_by, since, job_no LIMIT ?3
