-- The first of each lane by what they have waited, of each pool: those that reach the rank of the last
-- that was found by priority. Seldom there are any.
WITH clock AS MATERIALIZED (
    SELECT coalesce($5::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
)
SELECT c.ctid::text, c.lane, c.priority, c.rise, c.should_start_by, c.since, c.scheduled_at,
       c.job_no, c.sequence, c.attempt, c.own_priority, c.tenant_no, c.fence, c.crashes, c.prev_at,
       c.prev_sequence, c.limit_key, c.limit_max
  FROM unnest($2::int2[], $3::int8[], $4::int8[]) AS l(lane, places, rise_max)
 CROSS JOIN unnest($1::text[]) AS p(pool)
 CROSS JOIN LATERAL (SELECT ctid, * FROM ready
                      WHERE pool = p.pool AND lane = l.lane AND rise <= l.rise_max
                        AND (open_from IS NULL OR open_from <= (SELECT now FROM clock))
                        AND (open_until IS NULL OR open_until > (SELECT now FROM clock))
                        AND (forbidden_nodes IS NULL OR NOT forbidden_nodes ? $6)
                      ORDER BY rise, should_start_by, since, job_no
                      LIMIT l.places FOR UPDATE SKIP LOCKED) AS c;
