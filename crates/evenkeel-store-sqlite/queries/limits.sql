-- Concurrency limits: permits and limit queues.

-- :name claim_park
UPDATE ready SET home_pool = pool, pool = ?5, limited_by_max = ?6
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4 AND home_pool IS NULL

-- :name claim_permit_count
SELECT count(*) FROM permit WHERE key = ?1

-- :name claim_permit_sweep
-- Places whose attempts do not run any more, or not yet again.
DELETE FROM permit
WHERE key = ?1
  AND NOT EXISTS (SELECT 1 FROM attempt r
                  WHERE r.scheduled_at = permit.scheduled_at AND r.job_no = permit.job_no
                    AND r.sequence = permit.sequence AND r.attempt = permit.attempt
                    AND r.status = 1)

-- :name claim_permit_take
-- One that was handed back may have its place still.
INSERT INTO permit (key, scheduled_at, job_no, sequence, attempt) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO NOTHING

-- :name prune_permits_find
SELECT p.key, p.scheduled_at, p.job_no, p.sequence, p.attempt,
       NOT EXISTS (SELECT 1 FROM attempt r
                   WHERE r.scheduled_at = p.scheduled_at AND r.job_no = p.job_no
                     AND r.sequence = p.sequence AND r.attempt = p.attempt
                     AND r.status IN (0, 1)) AS has_ended
FROM permit p
WHERE (p.key, p.scheduled_at, p.job_no, p.sequence, p.attempt) > (?1, ?2, ?3, ?4, ?5)
ORDER BY p.key, p.scheduled_at, p.job_no, p.sequence, p.attempt LIMIT ?6

-- :name release_limited
-- Into its own pool, or into another waiting room.
UPDATE ready
SET pool = coalesce(?6, home_pool), home_pool = CASE WHEN ?6 IS NOT NULL THEN home_pool END,
    limited_by_max = ?7
WHERE scheduled_at = ?1 AND job_no = ?2 AND sequence = ?3 AND attempt = ?4
  AND home_pool IS NOT NULL AND pool = ?5

-- :name release_queues
-- The next waiting room, and the lowest and the highest limit in it.
SELECT r.pool,
       (SELECT min(limited_by_max) FROM ready WHERE home_pool IS NOT NULL AND pool = r.pool),
       (SELECT max(limited_by_max) FROM ready WHERE home_pool IS NOT NULL AND pool = r.pool)
FROM (SELECT pool FROM ready WHERE home_pool IS NOT NULL AND pool > ?1 ORDER BY pool LIMIT 1) r

-- :name release_running
SELECT count(*)
FROM permit p CROSS JOIN attempt r
  ON r.scheduled_at = p.scheduled_at AND r.job_no = p.job_no AND r.sequence = p.sequence
 AND r.attempt = p.attempt
WHERE p.key = ?1 AND r.status = 1

-- :name release_vacate
-- An attempt that has ended never runs again.
DELETE FROM permit
WHERE key = ?1 AND scheduled_at = ?2 AND job_no = ?3 AND sequence = ?4 AND attempt = ?5
  AND NOT EXISTS (SELECT 1 FROM attempt r
                  WHERE r.scheduled_at = ?2 AND r.job_no = ?3 AND r.sequence = ?4
                    AND r.attempt = ?5 AND r.status IN (0, 1))
