CASE WHEN j.standing = 2 THEN 6
     WHEN j.standing = 1 THEN 3
     WHEN s.live > 0 THEN iif(s.live > (SELECT count(*) FROM ready r WHERE r.job_no = j.job_no)
                                     + (SELECT count(*) FROM wake w WHERE w.job_no = j.job_no), 2, 0)
     WHEN {held} THEN 7
     WHEN s.next_at <= ?21 THEN 0
     WHEN s.next_at IS NOT NULL THEN 1
     WHEN s.last_status IS NULL THEN 0
     WHEN s.last_status IN (2, 7) THEN 4
     WHEN s.last_status IN (3, 5) THEN 5
     ELSE 6 END
