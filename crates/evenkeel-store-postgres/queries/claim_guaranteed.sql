-- The places that each lane has for itself. A row that somebody else is taking is passed over, and
-- so is one that may not be claimed now, or not by this node.
-- Found once, whatever the planner thinks of a queue that is empty most of the time.
WITH clock AS MATERIALIZED (
    SELECT coalesce($4::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), t AS MATERIALIZED (
    SELECT c.scheduled_at, c.job_no, c.sequence, c.attempt,
           row_number() OVER (PARTITION BY l.lane ORDER BY c.priority DESC, c.should_start_by,
                              c.ready_at, c.job_no) AS place, l.places
      FROM unnest($2::int2[], $3::int8[]) AS l(lane, places)
     CROSS JOIN unnest($1::text[]) AS p(pool)
     CROSS JOIN LATERAL (SELECT * FROM ready
                          WHERE pool = p.pool AND lane = l.lane
                            AND (open_from IS NULL OR open_from <= (SELECT now FROM clock))
                            AND (open_until IS NULL OR open_until > (SELECT now FROM clock))
                            AND (forbidden_nodes IS NULL OR NOT forbidden_nodes ? $5)
                          ORDER BY priority DESC, should_start_by, ready_at, job_no
                          LIMIT l.places FOR UPDATE SKIP LOCKED) AS c
)
DELETE FROM ready r USING t
 WHERE t.place <= t.places AND r.scheduled_at = t.scheduled_at AND r.job_no = t.job_no
   AND r.sequence = t.sequence AND r.attempt = t.attempt
RETURNING r.lane, r.priority, r.should_start_by, r.ready_at, r.scheduled_at, r.job_no, r.sequence,
           r.attempt, r.tenant_no, r.fence, r.crashes, r.prev_at, r.prev_sequence;
