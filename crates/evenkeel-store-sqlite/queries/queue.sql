-- Measuring and reprioritizing the queue.

-- :name queue_depths_count
-- The first of a lane of a pool, by priority. Counted along the order of the queue, all of whose
-- columns are in its index.
SELECT priority, count(*), min(since)
  FROM (SELECT priority, since FROM ready WHERE pool = ?1 AND lane = ?2
         ORDER BY priority DESC, should_start_by, since, job_no LIMIT ?3)
 GROUP BY priority

-- :name queue_depths_groups
-- The next lane of a pool in which something waits.
SELECT pool, lane FROM ready WHERE (pool, lane) > (?1, ?2) ORDER BY pool, lane LIMIT 1

-- :name queue_depths_parked
-- What waits for a place, by the first byte of the limit, which is its scope.
SELECT substr(pool, 2, 2), count(*)
FROM (SELECT pool FROM ready WHERE home_pool IS NOT NULL LIMIT ?1)
GROUP BY substr(pool, 2, 2)

-- :name queue_depths_rest
-- What waits after a lane of a pool, by lane and priority; whether that is in waiting rooms.
SELECT is_room, lane, priority, count(*), min(since)
  FROM (SELECT substr(pool, 1, 1) = '~' AS is_room, lane, priority, since
          FROM ready
         WHERE (pool, lane) > (?1, ?2)
         ORDER BY pool, lane
         LIMIT ?3)
 GROUP BY is_room, lane, priority

-- :name queue_front_first
SELECT scheduled_at, job_no, sequence, attempt FROM ready
WHERE pool = ?1 AND lane = ?2 AND open_from IS NULL
ORDER BY priority DESC, should_start_by, since, job_no LIMIT ?3

-- :name queue_front_risen
SELECT scheduled_at, job_no, sequence, attempt FROM ready
WHERE pool = ?1 AND lane = ?2 AND open_from IS NULL
ORDER BY rise, should_start_by, since, job_no LIMIT ?3

-- :name reprioritize_find
SELECT scheduled_at, job_no, sequence, attempt, priority, since, rise
FROM ready WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4

-- :name reprioritize
UPDATE ready SET rise = ?5
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4

-- :name waiting
-- What was not open when it came, or when it was opened again, is nobody's for now.
SELECT count(*) FROM (SELECT 1 FROM ready WHERE pool = ?1 AND open_from IS NULL LIMIT ?2)

-- :name waiting_ahead_higher
SELECT count(*) FROM (
    SELECT 1 FROM ready
    WHERE pool = ?1 AND lane = ?2 AND priority >= ?4 AND open_from IS NULL LIMIT ?3)

-- :name waiting_ahead_risen
-- Those that rank as high by their priority are met here, too. They are fewer than ?3, or else nobody
-- asks: so of twice as many the others are all, or enough.
SELECT count(*) FROM (
    SELECT priority FROM ready
    WHERE pool = ?1 AND lane = ?2 AND rise <= ?5 AND open_from IS NULL
    ORDER BY rise LIMIT 2 * ?3)
WHERE priority < ?4

-- :name waiting_of_front
-- The first ?3 of the pool by priority are looked at, whoever's they are, and no more.
SELECT lane, priority, rise, should_start_by, since, job_no, scheduled_at, sequence, attempt
FROM (
    SELECT lane, priority, rise, should_start_by, since, job_no, scheduled_at, sequence, attempt,
           tenant_no
    FROM ready WHERE pool = ?1
    ORDER BY lane, priority DESC, should_start_by, since, job_no, scheduled_at, sequence, attempt
    LIMIT ?3)
WHERE tenant_no = ?2

-- :name waiting_of_job
SELECT job_no FROM job WHERE id = ?2 AND tenant_no = ?1 AND state <> 3

-- :name waiting_of_ready
SELECT scheduled_at, job_no, sequence, attempt, pool, lane, priority, rise, should_start_by, since,
       open_from, open_until, own_priority, limited_by_max
FROM ready WHERE job_no = ?1
ORDER BY scheduled_at, sequence, attempt LIMIT ?2

-- :name waiting_of_risen
-- The first ?3 of the lane by what they have waited are looked at, of those that may have gained by it.
SELECT lane, priority, rise, should_start_by, since, job_no, scheduled_at, sequence, attempt
FROM (
    SELECT lane, priority, rise, should_start_by, since, job_no, scheduled_at, sequence, attempt,
           tenant_no
    FROM ready WHERE pool = ?1 AND lane = ?4 AND rise < ?5
    ORDER BY rise, should_start_by, since, job_no LIMIT ?3)
WHERE tenant_no = ?2

-- :name waiting_of_delayed
SELECT scheduled_at, job_no, sequence, attempt, due, priority FROM delayed_attempt WHERE job_no = ?1
ORDER BY scheduled_at, sequence, attempt LIMIT ?2

-- :name reprioritize_next
SELECT scheduled_at, job_no, sequence, attempt, priority, since, rise
FROM ready
WHERE (scheduled_at, job_no, sequence, attempt) > (?1, ?2, ?3, ?4)
ORDER BY scheduled_at, job_no, sequence, attempt LIMIT ?5
