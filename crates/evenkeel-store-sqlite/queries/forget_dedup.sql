-- Once more, by the writer: somebody may have taken the key meanwhile.
DELETE FROM dedup
WHERE tenant_no = ?1 AND key = ?2
  AND NOT EXISTS (SELECT 1 FROM job j WHERE j.job_no = dedup.job_no AND j.standing <> 3)
