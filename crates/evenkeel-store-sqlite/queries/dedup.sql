-- Deduplication keys.

-- :name prune_dedup_find
-- What comes after a key, and whether its job keeps nobody out any more.
SELECT d.tenant_no, d.key,
       EXISTS (SELECT 1 FROM job j JOIN job_state s ON s.job_no = j.job_no
               WHERE j.job_no = d.job_no
                 AND (j.state = 3 OR d.taken_at < ?4 AND s.next_at IS NULL AND s.live = 0
                                        AND j.state <> 1)) AS is_gone
FROM dedup_key d
WHERE (d.tenant_no, d.key) > (?1, ?2)
ORDER BY d.tenant_no, d.key LIMIT ?3

-- :name prune_dedup
-- Looked at once more, by the writer: somebody may have taken the key meanwhile.
DELETE FROM dedup_key
WHERE tenant_no = ?1 AND key = ?2
  AND EXISTS (SELECT 1 FROM job j JOIN job_state s ON s.job_no = j.job_no
              WHERE j.job_no = dedup_key.job_no
                AND (j.state = 3 OR dedup_key.taken_at < ?3 AND s.next_at IS NULL AND s.live = 0
                                       AND j.state <> 1))
