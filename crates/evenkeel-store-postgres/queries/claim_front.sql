-- The first of each lane by priority and by what they have waited, without taking anything: who of
-- these finds no place is moved out of the way.
WITH clock AS MATERIALIZED (
    SELECT coalesce($3::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
)
SELECT c.ctid::text, c.lane, c.priority, c.rise, c.should_start_by, c.since, c.scheduled_at,
       c.job_no, c.sequence, c.attempt, c.own_priority, c.tenant_no, c.fence, c.crashes, c.prev_at,
       c.prev_sequence, c.limit_key, c.limit_max
  FROM unnest($1::text[]) AS p(pool)
 CROSS JOIN unnest('{0,1,2}'::int2[]) AS l(lane)
 CROSS JOIN LATERAL (SELECT ctid, * FROM ready
                      WHERE pool = p.pool AND lane = l.lane
                        AND (open_from IS NULL OR open_from <= (SELECT now FROM clock))
                        AND (open_until IS NULL OR open_until > (SELECT now FROM clock))
                        AND (forbidden_nodes IS NULL OR NOT forbidden_nodes ? $4)
                      ORDER BY priority DESC, should_start_by, since, job_no
                      LIMIT $2) AS c
 UNION ALL
SELECT c.ctid::text, c.lane, c.priority, c.rise, c.should_start_by, c.since, c.scheduled_at,
       c.job_no, c.sequence, c.attempt, c.own_priority, c.tenant_no, c.fence, c.crashes, c.prev_at,
       c.prev_sequence, c.limit_key, c.limit_max
  FROM unnest($1::text[]) AS p(pool)
 CROSS JOIN unnest('{0,1,2}'::int2[]) AS l(lane)
 CROSS JOIN LATERAL (SELECT ctid, * FROM ready
                      WHERE pool = p.pool AND lane = l.lane
                        AND (open_from IS NULL OR open_from <= (SELECT now FROM clock))
                        AND (open_until IS NULL OR open_until > (SELECT now FROM clock))
                        AND (forbidden_nodes IS NULL OR NOT forbidden_nodes ? $4)
                      ORDER BY rise, should_start_by, since, job_no
                      LIMIT $2) AS c;
