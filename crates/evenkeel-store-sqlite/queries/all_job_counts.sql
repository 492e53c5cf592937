-- Kept counts of all tenants; what runs, as the nodes said last; and what waits or is over, counted
-- up to a bound.
SELECT coalesce(sum(t.job_count), 0), coalesce(sum(t.paused), 0), coalesce(sum(t.cancelled), 0),
       (SELECT coalesce(sum(r.running), 0) FROM node n CROSS JOIN tally_running r
        ON r.node_no = n.node_no WHERE n.state IN (0, 1)),
       (SELECT count(*) FROM (SELECT 1 FROM ready LIMIT ?1))
           + (SELECT count(*) FROM (SELECT 1 FROM wake LIMIT ?1)),
       e.completed, e.failed, e.cancelled, e.unborn, e.looked_at
FROM tenant t, (
    SELECT count(*) FILTER (WHERE live = 0 AND last_status IN (2, 7)) AS completed,
           count(*) FILTER (WHERE live = 0 AND last_status IN (3, 5)) AS failed,
           count(*) FILTER (WHERE live = 0 AND last_status IN (4, 8)) AS cancelled,
           count(*) FILTER (WHERE live = 0 AND last_status IS NULL) AS unborn,
           count(*) AS looked_at
    FROM (SELECT live, last_status FROM job_state WHERE slot IS NULL AND active = 1 LIMIT ?1)) e
