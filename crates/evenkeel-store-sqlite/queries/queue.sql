-- Measuring and reprioritizing the queue.

-- :fragment queue_position
lane, priority, rise, should_start_by, since, job_no, scheduled_at, sequence, attempt

-- :name queue_depths_count
-- Counts the first ?3 attempts of a lane of a pool by priority. The index of the dispatch order
-- holds all columns that this statement needs.
SELECT priority, count(*) AS waiting, min(since) AS oldest
  FROM (SELECT priority, since FROM ready WHERE pool = ?1 AND lane = ?2
         ORDER BY priority DESC, should_start_by, since, job_no LIMIT ?3)
 GROUP BY priority

-- :name queue_depths_groups
-- The next lane of a pool that has attempts.
SELECT pool, lane FROM ready WHERE (pool, lane) > (?1, ?2) ORDER BY pool, lane LIMIT 1

-- :name queue_depths_limited
-- Counts attempts in limit queues by the scope of the limit, which is the first byte of its key.
SELECT substr(pool, 2, 2) AS scope, count(*) AS waiting
FROM (SELECT pool FROM ready WHERE home_pool IS NOT NULL LIMIT ?1)
GROUP BY substr(pool, 2, 2)

-- :name queue_depths_rest
-- Counts the next ?3 attempts after a lane of a pool by lane and priority, separately for attempts
-- in limit queues.
SELECT is_limited, lane, priority, count(*) AS waiting, min(since) AS oldest
  FROM (SELECT substr(pool, 1, 1) = '~' AS is_limited, lane, priority, since
          FROM ready
         WHERE (pool, lane) > (?1, ?2)
         ORDER BY pool, lane
         LIMIT ?3)
 GROUP BY is_limited, lane, priority

-- :name queue_front_first
SELECT {attempt_key} FROM ready
WHERE pool = ?1 AND lane = ?2 AND open_from IS NULL
ORDER BY priority DESC, should_start_by, since, job_no LIMIT ?3

-- :name queue_front_risen
SELECT {attempt_key} FROM ready
WHERE pool = ?1 AND lane = ?2 AND open_from IS NULL
ORDER BY rise, should_start_by, since, job_no LIMIT ?3

-- :name reprioritize_find (scheduled_at, job_no, sequence, attempt)
SELECT {attempt_key}, priority, since, rise
FROM ready WHERE {this_attempt}

-- :name reprioritize_next (scheduled_at, job_no, sequence, attempt, limit)
SELECT {attempt_key}, priority, since, rise
FROM ready
WHERE ({attempt_key}) > (:scheduled_at, :job_no, :sequence, :attempt)
ORDER BY {attempt_key} LIMIT :limit

-- :name reprioritize (scheduled_at, job_no, sequence, attempt, rise)
UPDATE ready SET rise = :rise
WHERE {this_attempt}

-- :name waiting
-- Attempts whose claim window was not open when they were queued or reopened do not count.
SELECT count(*) FROM (SELECT 1 FROM ready WHERE pool = ?1 AND open_from IS NULL LIMIT ?2)

-- :name waiting_ahead_higher (pool, lane, limit, priority)
SELECT count(*) FROM (
    SELECT 1 FROM ready
    WHERE pool = :pool AND lane = :lane AND priority >= :priority AND open_from IS NULL
    LIMIT :limit)

-- :name waiting_ahead_risen (pool, lane, limit, priority, rise)
-- The scan also finds attempts that rank as high by their priority. The caller has counted fewer
-- than `limit` of these, so twice the limit is enough for the rest.
SELECT count(*) FROM (
    SELECT priority FROM ready
    WHERE pool = :pool AND lane = :lane AND rise <= :rise AND open_from IS NULL
    ORDER BY rise LIMIT 2 * :limit)
WHERE priority < :priority

-- :name waiting_of_front
-- Reads the first ?3 attempts of the pool in the order of priority and returns those of the tenant.
SELECT {queue_position}
FROM (
    SELECT {queue_position}, tenant_no
    FROM ready WHERE pool = ?1
    ORDER BY lane, priority DESC, should_start_by, since, job_no, scheduled_at, sequence, attempt
    LIMIT ?3)
WHERE tenant_no = ?2

-- :name waiting_of_ready
SELECT {attempt_key}, pool, lane, priority, rise, should_start_by, since,
       open_from, open_until, own_priority, limited_by_max
FROM ready WHERE job_no = ?1
ORDER BY scheduled_at, sequence, attempt LIMIT ?2

-- :name waiting_of_risen (pool, tenant_no, limit, lane, rise)
-- Reads the first `limit` attempts of the lane in the order of waiting time, among those that may
-- rank higher by it, and returns the attempts of the tenant.
SELECT {queue_position}
FROM (
    SELECT {queue_position}, tenant_no
    FROM ready WHERE pool = :pool AND lane = :lane AND rise < :rise
    ORDER BY rise, should_start_by, since, job_no LIMIT :limit)
WHERE tenant_no = :tenant_no

-- :name waiting_of_delayed
SELECT {attempt_key}, due, priority FROM delayed_attempt WHERE job_no = ?1
ORDER BY scheduled_at, sequence, attempt LIMIT ?2
