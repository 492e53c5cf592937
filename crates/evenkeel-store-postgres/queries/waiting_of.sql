-- What waits of a job. The front of its pools is looked at once for all its attempts: the first ten
-- thousand by priority, and of each lane as many by what they have waited, of those that may have
-- gained by it, whoever's they are (the limit comes before the tenant); and of them the tenant's own
-- first thousand by rank. $4 is what whoever began to wait at the epoch ranks at; without it nobody
-- asks what is before them, and neither the queue nor places are looked at. These limits are no
-- parameters, so that the planner knows that it is to follow the indexes and not to sort the queue.
WITH a AS MATERIALIZED (
    SELECT w.*
      FROM job j
     CROSS JOIN LATERAL (
           SELECT scheduled_at, job_no, sequence, attempt, NULL::int8 AS due, pool, lane,
                  greatest(priority, $4::int8 - rise) AS rank, should_start_by, since, open_from, open_until,
                  CASE WHEN own_priority THEN priority END AS own, parked_max
             FROM ready WHERE job_no = j.job_no
            UNION ALL
           SELECT scheduled_at, job_no, sequence, attempt, due, NULL, NULL, NULL, NULL, NULL, NULL,
                  NULL, priority, NULL
             FROM wake WHERE job_no = j.job_no) AS w
     WHERE j.id = $1 AND j.tenant_no = $2 AND j.standing <> 3
     ORDER BY w.scheduled_at, w.sequence, w.attempt
     LIMIT $3
), own AS MATERIALIZED (
    SELECT o.*
      FROM (SELECT DISTINCT pool FROM a
             WHERE due IS NULL AND parked_max IS NULL AND $4::int8 IS NOT NULL) AS p
     CROSS JOIN LATERAL (
           SELECT f.*
             FROM (SELECT *
                     FROM (SELECT pool, lane, greatest(priority, $4::int8 - rise) AS rank,
                                  should_start_by, since, job_no, scheduled_at, sequence, attempt,
                                  tenant_no
                             FROM ready
                            WHERE pool = p.pool
                            ORDER BY lane, priority DESC, should_start_by, since, job_no
                            LIMIT 10000) AS high
                    UNION
                   SELECT r.*
                     FROM unnest('{0,1,2}'::int2[]) AS l(lane)
                    CROSS JOIN LATERAL (
                          SELECT pool, lane, greatest(priority, $4::int8 - rise) AS rank,
                                 should_start_by, since, job_no, scheduled_at, sequence, attempt,
                                 tenant_no
                            FROM ready
                           WHERE pool = p.pool AND lane = l.lane AND rise < $4::int8
                           ORDER BY rise, should_start_by, since, job_no
                           LIMIT 10000) AS r) AS f
            WHERE f.tenant_no = $2
            ORDER BY f.lane, f.rank DESC, f.should_start_by, f.since, f.job_no
            LIMIT 1000) AS o
), rooms AS MATERIALIZED (
    -- How many run in a lane is nobody's business: they are all tenants'.
    SELECT d.pool,
           (SELECT count(*) FROM place p
             WHERE p.key = decode(substr(d.pool, 2), 'hex')
               AND (SELECT e.status FROM run e
                     WHERE e.scheduled_at = p.scheduled_at AND e.job_no = p.job_no
                       AND e.sequence = p.sequence AND e.attempt = p.attempt) = 1) AS running
      FROM (SELECT DISTINCT pool FROM a
             WHERE parked_max IS NOT NULL AND substr(pool, 2, 2) <> '03'
               AND $4::int8 IS NOT NULL) AS d
)
SELECT a.scheduled_at, a.job_no, a.sequence, a.attempt, a.due, a.since, a.open_from,
       a.open_until,
       CASE WHEN a.due IS NULL AND $4::int8 IS NOT NULL THEN
           (SELECT count(*) FROM own o
             WHERE o.pool = a.pool
               AND (o.lane, -o.rank, o.should_start_by, o.since, o.job_no)
                   < (a.lane, -a.rank, a.should_start_by, a.since, a.job_no))
       END AS ahead, a.own, a.pool, a.parked_max,
       (SELECT r.running FROM rooms r WHERE r.pool = a.pool) AS running
  FROM a
 ORDER BY a.scheduled_at, a.sequence, a.attempt;
