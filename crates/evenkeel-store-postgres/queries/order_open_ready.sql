-- A priority that a run was given is its own; another one changes with its job, and what was
-- waited stays. All that waits is locked already.
UPDATE ready q
   SET open_from = d.open_from, open_until = d.open_until,
       forbidden_nodes = d.forbidden_nodes::jsonb,
       rise = CASE WHEN q.own_priority THEN q.rise ELSE q.rise + q.priority - d.priority END,
       priority = CASE WHEN q.own_priority THEN q.priority ELSE d.priority END
  FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::text[], $5::int2[])
       AS d(job_no, open_from, open_until, forbidden_nodes, priority)
 WHERE q.job_no = d.job_no;
