-- The first of each lane of each waiting room, by priority and by what they have waited: those that
-- rank highest are among them.
WITH clock AS MATERIALIZED (
    SELECT coalesce($3::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
)
SELECT c.ctid::text, c.lane, c.priority, c.rise, c.should_start_by, c.since, c.scheduled_at,
       c.job_no, c.sequence, c.attempt, c.own_priority, c.tenant_no, c.fence, c.crashes, c.prev_at,
       c.prev_sequence, c.limit_key, c.limit_max, d.nth, (SELECT now FROM clock)
  FROM unnest($1::text[], $2::int8[]) WITH ORDINALITY AS d(pool, places, nth)
 CROSS JOIN unnest('{0,1,2}'::int2[]) AS l(lane)
 CROSS JOIN LATERAL (SELECT ctid, * FROM ready
                      WHERE pool = d.pool AND lane = l.lane
                        AND (open_from IS NULL OR open_from <= (SELECT now FROM clock))
                        AND (open_until IS NULL OR open_until > (SELECT now FROM clock))
                      ORDER BY priority DESC, should_start_by, since, job_no
                      LIMIT d.places) AS c
 UNION ALL
SELECT c.ctid::text, c.lane, c.priority, c.rise, c.should_start_by, c.since, c.scheduled_at,
       c.job_no, c.sequence, c.attempt, c.own_priority, c.tenant_no, c.fence, c.crashes, c.prev_at,
       c.prev_sequence, c.limit_key, c.limit_max, d.nth, (SELECT now FROM clock)
  FROM unnest($1::text[], $2::int8[]) WITH ORDINALITY AS d(pool, places, nth)
 CROSS JOIN unnest('{0,1,2}'::int2[]) AS l(lane)
 CROSS JOIN LATERAL (SELECT ctid, * FROM ready
                      WHERE pool = d.pool AND lane = l.lane
                        AND (open_from IS NULL OR open_from <= (SELECT now FROM clock))
                        AND (open_until IS NULL OR open_until > (SELECT now FROM clock))
                      ORDER BY rise, should_start_by, since, job_no
                      LIMIT d.places) AS c;
