-- Concurrency limits: permits and limit queues.

-- :name claim_to_limit_queue (scheduled_at, job_no, sequence, attempt, pool, limited_by_max)
UPDATE ready SET home_pool = pool, pool = :pool, limited_by_max = :limited_by_max
WHERE {this_attempt} AND home_pool IS NULL

-- :name claim_permit_count
SELECT count(*) FROM permit WHERE key = ?1

-- :name claim_permit_sweep
-- Deletes the permits of attempts that are not running.
DELETE FROM permit
WHERE key = ?1
  AND NOT EXISTS (SELECT 1 FROM attempt r
                  WHERE r.scheduled_at = permit.scheduled_at AND r.job_no = permit.job_no
                    AND r.sequence = permit.sequence AND r.attempt = permit.attempt
                    AND r.status = {attempt.running})

-- :name claim_permit_take (key, scheduled_at, job_no, sequence, attempt)
-- An attempt that was returned to the queue may still have its permit.
INSERT INTO permit (key, scheduled_at, job_no, sequence, attempt)
VALUES (:key, :scheduled_at, :job_no, :sequence, :attempt)
ON CONFLICT DO NOTHING

-- :name prune_permits_find (key, scheduled_at, job_no, sequence, attempt, limit)
SELECT p.key, p.scheduled_at, p.job_no, p.sequence, p.attempt,
       NOT EXISTS (SELECT 1 FROM attempt r
                   WHERE r.scheduled_at = p.scheduled_at AND r.job_no = p.job_no
                     AND r.sequence = p.sequence AND r.attempt = p.attempt
                     AND r.status IN ({attempts.unfinished})) AS has_ended
FROM permit p
WHERE (p.key, p.scheduled_at, p.job_no, p.sequence, p.attempt)
      > (:key, :scheduled_at, :job_no, :sequence, :attempt)
ORDER BY p.key, p.scheduled_at, p.job_no, p.sequence, p.attempt LIMIT :limit

-- :name release_limited (
--   scheduled_at, job_no, sequence, attempt, from_pool, to_pool, limited_by_max)
-- Returns an attempt to its pool, or moves it to another limit queue if `to_pool` is set.
UPDATE ready
SET pool = coalesce(:to_pool, home_pool),
    home_pool = CASE WHEN :to_pool IS NOT NULL THEN home_pool END,
    limited_by_max = :limited_by_max
WHERE {this_attempt} AND home_pool IS NOT NULL AND pool = :from_pool

-- :name release_queues
-- The next limit queue, and the lowest and the highest limit of its attempts.
SELECT r.pool,
       (SELECT min(limited_by_max) FROM ready WHERE home_pool IS NOT NULL AND pool = r.pool),
       (SELECT max(limited_by_max) FROM ready WHERE home_pool IS NOT NULL AND pool = r.pool)
FROM (SELECT pool FROM ready WHERE home_pool IS NOT NULL AND pool > ?1 ORDER BY pool LIMIT 1) r

-- :name release_running
SELECT count(*)
FROM permit l CROSS JOIN attempt r
  ON {same_attempt}
WHERE l.key = ?1 AND r.status = {attempt.running}

-- :name release_delete_permits (key, scheduled_at, job_no, sequence, attempt)
-- Deletes the permit if its attempt has finished, because a finished attempt never runs again.
DELETE FROM permit
WHERE key = :key AND {this_attempt}
  AND NOT EXISTS (SELECT 1 FROM attempt r
                  WHERE r.scheduled_at = :scheduled_at AND r.job_no = :job_no
                    AND r.sequence = :sequence AND r.attempt = :attempt
                    AND r.status IN ({attempts.unfinished}))
