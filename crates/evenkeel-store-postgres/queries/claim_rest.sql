-- The first in the order of dispatch, whatever their lanes. What may not be claimed now, or not by
-- this node, is passed over.
-- Found once, whatever the planner thinks of a queue that is empty most of the time.
WITH clock AS MATERIALIZED (
    SELECT coalesce($3::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), t AS MATERIALIZED (
    SELECT c.scheduled_at, c.job_no, c.sequence, c.attempt
      FROM unnest($1::text[]) AS p(pool)
     CROSS JOIN LATERAL (SELECT * FROM ready
                          WHERE pool = p.pool
                            AND (open_from IS NULL OR open_from <= (SELECT now FROM clock))
                            AND (open_until IS NULL OR open_until > (SELECT now FROM clock))
                            AND (forbidden_nodes IS NULL OR NOT forbidden_nodes ? $4)
                          ORDER BY lane, priority DESC, should_start_by, ready_at, job_no
                          LIMIT $2 FOR UPDATE SKIP LOCKED) AS c
     ORDER BY c.lane, c.priority DESC, c.should_start_by, c.ready_at, c.job_no
     LIMIT $2
)
DELETE FROM ready r USING t
 WHERE r.scheduled_at = t.scheduled_at AND r.job_no = t.job_no AND r.sequence = t.sequence
   AND r.attempt = t.attempt
RETURNING r.lane, r.priority, r.should_start_by, r.ready_at, r.scheduled_at, r.job_no, r.sequence,
           r.attempt, r.tenant_no, r.fence, r.crashes, r.prev_at, r.prev_sequence;
