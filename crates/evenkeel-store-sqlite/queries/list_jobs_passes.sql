-- Does job `c.job_no` pass the filter? The states are numbered as in JobStatus::ALL; ?21 is now. A due
-- job with blackouts (7) is pending or scheduled: who asks decides, from `held` and `average_us`.
SELECT j.job_no, j.updated_at, s.next_at, j.name, j.configuration,
       (?2 IS NULL OR substr(j.name, 1, length(?2)) = ?2)
   AND (?3 IS NULL OR j.source_id = ?3)
   AND (?4 IS NULL OR substr(j.source_id, 1, length(?4)) = ?4)
   AND (?5 IS NULL OR CASE {status} WHEN ?5 THEN 1 WHEN 7 THEN ?5 IN (0, 1) ELSE 0 END)
   AND (?6 IS NULL OR ?6 = coalesce((SELECT level FROM watch v WHERE v.job_no = j.job_no), 0))
   AND (?7 IS NULL OR j.executor = ?7)
   AND (?8 IS NULL OR j.lane = ?8)
   AND (?9 IS NULL OR NOT EXISTS (
            SELECT 1 FROM json_each(?9) l
            WHERE NOT EXISTS (SELECT 1 FROM job_label b
                              WHERE b.job_no = j.job_no AND b.key = l.value ->> 0
                                AND b.value = l.value ->> 1)))
   AND (?10 IS NULL OR s.next_at >= ?10)
   AND (?11 IS NULL OR s.next_at < ?11)
   AND (?13 IS NULL OR j.target_no = ?13)
   AND (?14 IS NULL
        OR s.live > 0 AND (?14 = 1) =
           (s.live > (SELECT count(*) FROM ready r WHERE r.job_no = j.job_no)
                   + (SELECT count(*) FROM wake w WHERE w.job_no = j.job_no)))
   AND (?12 <> 2 OR j.name IS NOT NULL)
   AND (?12 <> 3 OR s.next_at IS NOT NULL) AS passes,
       CASE WHEN ?5 IN (0, 1) AND {held} THEN j.definition END AS held, s.average_us
FROM c CROSS JOIN job j ON j.job_no = c.job_no CROSS JOIN job_state s ON s.job_no = c.job_no
WHERE j.tenant_no = ?1 AND j.standing <> 3
