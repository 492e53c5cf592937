-- Deduplication keys.

-- :name prune_dedup_find (tenant_no, key, limit, taken_before)
-- The next deduplication keys, and whether their job no longer holds them.
SELECT d.tenant_no, d.key,
       EXISTS (SELECT 1 FROM job j JOIN job_state s ON s.job_no = j.job_no
               WHERE j.job_no = d.job_no
                 AND (j.state = {job.deleted}
                      OR d.taken_at < :taken_before AND s.next_at IS NULL AND s.live = 0
                         AND j.state <> {job.paused})) AS is_free
FROM dedup_key d
WHERE (d.tenant_no, d.key) > (:tenant_no, :key)
ORDER BY d.tenant_no, d.key LIMIT :limit

-- :name prune_dedup
-- The statement checks the key again, because another job may have taken it since the reader found
-- it.
DELETE FROM dedup_key
WHERE tenant_no = ?1 AND key = ?2
  AND EXISTS (SELECT 1 FROM job j JOIN job_state s ON s.job_no = j.job_no
              WHERE j.job_no = dedup_key.job_no
                AND (j.state = {job.deleted}
                     OR dedup_key.taken_at < ?3 AND s.next_at IS NULL AND s.live = 0
                        AND j.state <> {job.paused}))
