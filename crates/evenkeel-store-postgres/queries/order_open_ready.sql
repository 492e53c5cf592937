-- What waits for a place goes back into its pool: it may have another key now, or none.
-- A priority that a run was given is its own; another one changes with its job, and what was
-- waited stays. All that waits is locked already.
UPDATE ready q
   SET open_from = d.open_from, open_until = d.open_until,
       forbidden_nodes = d.forbidden_nodes::jsonb,
       rise = CASE WHEN q.own_priority THEN q.rise ELSE q.rise + q.priority - d.priority END,
       priority = CASE WHEN q.own_priority THEN q.priority ELSE d.priority END,
       limit_key = d.limit_key, limit_max = d.limit_max,
       pool = coalesce(q.home_pool, q.pool), home_pool = NULL, parked_max = NULL
  FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::text[], $5::int2[], $6::bytea[], $7::int4[])
       AS d(job_no, open_from, open_until, forbidden_nodes, priority, limit_key, limit_max)
 WHERE q.job_no = d.job_no;
