-- Kept counts of all tenants; what runs, as the nodes said last; and what waits or is over, counted
-- up to a bound.
SELECT coalesce(sum(t.job_count), 0)::int8, coalesce(sum(t.paused), 0)::int8,
       coalesce(sum(t.cancelled), 0)::int8,
       (SELECT coalesce(sum(r.running), 0)::int8 FROM node n JOIN tally_running r USING (node_no)
         WHERE n.state IN (0, 1)),
       (SELECT count(*) FROM (SELECT FROM ready LIMIT $1) AS q)
           + (SELECT count(*) FROM (SELECT FROM wake LIMIT $1) AS w),
       (SELECT array[count(*) FILTER (WHERE e.live = 0 AND e.last_status IN (2, 7)),
                     count(*) FILTER (WHERE e.live = 0 AND e.last_status IN (3, 5)),
                     count(*) FILTER (WHERE e.live = 0 AND e.last_status IN (4, 8)),
                     count(*) FILTER (WHERE e.live = 0 AND e.last_status IS NULL), count(*)]
          FROM (SELECT live, last_status FROM job_state WHERE slot IS NULL AND active LIMIT $1) AS e)
  FROM tenant t;
