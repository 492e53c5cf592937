-- A priority that a run was given is its own; another one changes with its job, and what was waited
-- stays. The right sides are what was there before. What waits for a place goes back into its pool:
-- it may have another key now, or none.
UPDATE ready
SET open_from = ?2, open_until = ?3, forbidden_nodes = ?4,
    rise = CASE WHEN own_priority THEN rise ELSE rise + priority - ?5 END,
    priority = CASE WHEN own_priority THEN priority ELSE ?5 END,
    limit_key = ?6, limit_max = ?7,
    pool = coalesce(home_pool, pool), home_pool = NULL, parked_max = NULL
WHERE job_no = ?1
