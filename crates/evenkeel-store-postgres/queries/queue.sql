-- Measuring and reprioritizing the queue.

-- :name queue_depths_count (pool, lane, limit)
-- Counts the first rows of each lane of a pool by priority. Reads only the index ready_order.
SELECT g.nth, c.priority, c.waiting, c.oldest
  FROM unnest(:pool::text[], :lane::int2[]) WITH ORDINALITY AS g(pool, lane, nth)
 CROSS JOIN LATERAL (
    SELECT w.priority, count(*) AS waiting, min(w.since) AS oldest
      FROM (SELECT priority, since FROM ready
             WHERE pool = g.pool AND lane = g.lane
             ORDER BY priority DESC, should_start_by, since, job_no
             LIMIT :limit) AS w
     GROUP BY w.priority) AS c;

-- :name queue_depths_groups
-- Returns the lanes of pools with queued attempts, one index step each. All limit queues together
-- take one step.
WITH RECURSIVE found AS (
    (SELECT pool, lane, 1 AS nth FROM ready ORDER BY pool, lane LIMIT 1)
    UNION ALL
    SELECT next.pool, next.lane, found.nth + 1
      FROM found
     CROSS JOIN LATERAL (SELECT pool, lane FROM ready
                          WHERE (pool, lane) > (CASE WHEN starts_with(found.pool, '~') THEN '~g'
                                                     ELSE found.pool END, found.lane)
                          ORDER BY pool, lane LIMIT 1) AS next
     WHERE found.nth <= $1::int8
)
SELECT pool, lane FROM found WHERE NOT starts_with(pool, '~')
 ORDER BY nth LIMIT $1;

-- :name queue_depths_limited
-- Counts attempts in limit queues by the scope of the limit, which is the first byte of its key.
SELECT substr(pool, 2, 2), count(*)
  FROM (SELECT pool FROM ready WHERE home_pool IS NOT NULL LIMIT $1) AS limited
 GROUP BY 1;

-- :name queue_depths_rest (after_pool, after_lane, limit)
-- Counts attempts after a lane of a pool by lane and priority, separately for attempts in limit
-- queues.
SELECT r.is_limited, r.lane, r.priority, count(*) AS waiting, min(r.since) AS oldest
  FROM (SELECT starts_with(pool, '~') AS is_limited, lane, priority, since
          FROM ready
         WHERE (pool, lane) > (:after_pool::text, :after_lane::int2)
         ORDER BY pool, lane
         LIMIT :limit) AS r
 GROUP BY r.is_limited, r.lane, r.priority;

-- :name queue_front (pools, limit)
-- Each part of the UNION follows its index and ends at `limit`. An attempt in both parts counts
-- twice.
SELECT coalesce(sum(hashint8(front.job_no # front.scheduled_at # front.attempt::int8)), 0)::int8
  FROM unnest(:pools::text[]) AS p(pool)
 CROSS JOIN generate_series(0, 2) AS l(lane)
 CROSS JOIN LATERAL (
       (SELECT job_no, scheduled_at, attempt FROM ready
         WHERE pool = p.pool AND lane = l.lane::int2 AND open_from IS NULL
         ORDER BY priority DESC, should_start_by, since, job_no LIMIT :limit)
       UNION ALL
       (SELECT job_no, scheduled_at, attempt FROM ready
         WHERE pool = p.pool AND lane = l.lane::int2 AND open_from IS NULL
         ORDER BY rise, should_start_by, since, job_no LIMIT :limit)) AS front;

-- :name reprioritize_find (after_at, after_job_no, after_sequence, after_attempt, limit)
SELECT scheduled_at, job_no, sequence, attempt, priority, since, rise
  FROM ready
 WHERE (scheduled_at, job_no, sequence, attempt) > (:after_at::int8, :after_job_no::int8,
                                                    :after_sequence::int4, :after_attempt::int2)
 ORDER BY scheduled_at, job_no, sequence, attempt
 LIMIT :limit;

-- :name reprioritize (job_no, scheduled_at, sequence, attempt, old_rise, new_rise)
-- An attempt whose `rise` has changed in the meantime is skipped and read again later.
WITH d AS MATERIALIZED (
    SELECT *
      FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[], :attempt::int2[],
                  :old_rise::int8[], :new_rise::int8[])
           AS d(job_no, scheduled_at, sequence, attempt, before, rise)
), locked AS MATERIALIZED (
    SELECT r.ctid AS row_id, d.rise
      FROM d JOIN ready r USING (scheduled_at, job_no, sequence, attempt)
     WHERE r.rise = d.before
       FOR UPDATE OF r SKIP LOCKED
)
UPDATE ready r SET rise = l.rise FROM locked l WHERE r.ctid = l.row_id;

-- :name waiting (pools, limit)
-- Attempts whose claim window was closed when they were queued are not counted.
SELECT count(*) FROM (SELECT FROM ready WHERE pool = ANY (:pools::text[])
                      AND open_from IS NULL LIMIT :limit) AS waiting;

-- :name waiting_ahead (pools, lane, rank, rise_max, limit)
-- Counts attempts of the lane that rank as high by priority, and attempts that do by waiting time.
-- Each of the two parts follows its index and ends at `limit`. The second part reads twice as many
-- rows, because it also finds the rows of the first part.
SELECT least(:limit::int8,
       (SELECT count(*) FROM unnest(:pools::text[]) AS p(pool)
         CROSS JOIN LATERAL (
               SELECT FROM ready
                WHERE pool = p.pool AND lane = :lane::int2 AND priority >= :rank::int8
                  AND open_from IS NULL
                ORDER BY priority DESC, should_start_by, since, job_no
                LIMIT :limit) AS higher)
     + (SELECT count(*) FROM unnest(:pools::text[]) AS p(pool)
         CROSS JOIN LATERAL (
               SELECT priority FROM ready
                WHERE pool = p.pool AND lane = :lane AND rise <= :rise_max::int8
                  AND open_from IS NULL
                ORDER BY rise, should_start_by, since, job_no
                LIMIT 2 * :limit) AS risen
         WHERE risen.priority < :rank));

-- :name waiting_of (id, tenant, limit, level)
-- The pending attempts of a job, with the number of the tenant's attempts ahead of each. For that,
-- the statement reads the front of their pools once: the first 10,000 rows by priority and 10,000
-- rows of each lane by waiting time, of all tenants. Of these it counts the first 1,000 of the
-- tenant by rank. `level` is the rank of an attempt that has waited since 1970; NULL skips the
-- queue and the permits. The limits are constants, so that the planner follows the indexes and does
-- not sort the queue.
WITH a AS MATERIALIZED (
    SELECT w.*
      FROM job j
     CROSS JOIN LATERAL (
           SELECT scheduled_at, job_no, sequence, attempt, NULL::int8 AS due, pool, lane,
                  greatest(priority, :level::int8 - rise) AS rank, should_start_by, since,
                  open_from, open_until,
                  CASE WHEN own_priority THEN priority END AS own, limited_by_max
             FROM ready WHERE job_no = j.job_no
            UNION ALL
           SELECT scheduled_at, job_no, sequence, attempt, due, NULL, NULL, NULL, NULL, NULL, NULL,
                  NULL, priority, NULL
             FROM delayed_attempt WHERE job_no = j.job_no) AS w
     WHERE j.id = :id AND j.tenant_no = :tenant AND j.state <> {job.deleted}
     ORDER BY w.scheduled_at, w.sequence, w.attempt
     LIMIT :limit
), own AS MATERIALIZED (
    SELECT o.*
      FROM (SELECT DISTINCT pool FROM a
             WHERE due IS NULL AND limited_by_max IS NULL AND :level::int8 IS NOT NULL) AS p
     CROSS JOIN LATERAL (
           SELECT f.*
             FROM (SELECT *
                     FROM (SELECT pool, lane, greatest(priority, :level::int8 - rise) AS rank,
                                  should_start_by, since, job_no, scheduled_at, sequence, attempt,
                                  tenant_no
                             FROM ready
                            WHERE pool = p.pool
                            ORDER BY lane, priority DESC, should_start_by, since, job_no
                            LIMIT 10000) AS high
                    UNION
                   SELECT r.*
                     FROM unnest('{{lanes.all}}'::int2[]) AS l(lane)
                    CROSS JOIN LATERAL (
                          SELECT pool, lane, greatest(priority, :level::int8 - rise) AS rank,
                                 should_start_by, since, job_no, scheduled_at, sequence, attempt,
                                 tenant_no
                            FROM ready
                           WHERE pool = p.pool AND lane = l.lane AND rise < :level::int8
                           ORDER BY rise, should_start_by, since, job_no
                           LIMIT 10000) AS r) AS f
            WHERE f.tenant_no = :tenant
            ORDER BY f.lane, f.rank DESC, f.should_start_by, f.since, f.job_no
            LIMIT 1000) AS o
), limit_queue AS MATERIALIZED (
    -- not for limits of lanes (scope 03), because those attempts belong to all tenants
    SELECT d.pool,
           (SELECT count(*) FROM permit p
             WHERE p.key = decode(substr(d.pool, 2), 'hex')
               AND (SELECT e.status FROM attempt e
                     WHERE e.scheduled_at = p.scheduled_at AND e.job_no = p.job_no
                       AND e.sequence = p.sequence
                       AND e.attempt = p.attempt) = {attempt.running}) AS running
      FROM (SELECT DISTINCT pool FROM a
             WHERE limited_by_max IS NOT NULL AND substr(pool, 2, 2) <> '03'
               AND :level::int8 IS NOT NULL) AS d
)
SELECT a.scheduled_at, a.job_no, a.sequence, a.attempt, a.due, a.since, a.open_from,
       a.open_until,
       CASE WHEN a.due IS NULL AND :level::int8 IS NOT NULL THEN
           (SELECT count(*) FROM own o
             WHERE o.pool = a.pool
               AND (o.lane, -o.rank, o.should_start_by, o.since, o.job_no)
                   < (a.lane, -a.rank, a.should_start_by, a.since, a.job_no))
       END AS ahead, a.own, a.pool, a.limited_by_max,
       (SELECT r.running FROM limit_queue r WHERE r.pool = a.pool) AS running
  FROM a
 ORDER BY a.scheduled_at, a.sequence, a.attempt;
