-- Looked at once more, by the writer: somebody may have taken the key meanwhile.
DELETE FROM dedup
WHERE tenant_no = ?1 AND key = ?2
  AND EXISTS (SELECT 1 FROM job j JOIN job_state s ON s.job_no = j.job_no
              WHERE j.job_no = dedup.job_no
                AND (j.standing = 3 OR dedup.taken_at < ?3 AND s.next_at IS NULL AND s.live = 0
                                       AND j.standing <> 1))
