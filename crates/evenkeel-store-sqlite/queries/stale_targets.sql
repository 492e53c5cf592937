SELECT t.tenant_no, t.number, t.created_at,
       nullif(max(coalesce(t.last_success_at, 0), coalesce((
           SELECT max(s.last_good_end_at)
           FROM job j JOIN job_state s ON s.job_no = j.job_no
           WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number
             AND s.last_good_end_at > coalesce(j.target_since, 0)), 0)), 0) AS last_success_at,
       (SELECT j.id FROM job j
         WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number AND j.standing = 0
           AND j.executor <> 'none'
         ORDER BY j.job_no LIMIT 1) AS job,
       (SELECT min(s.next_at)
          FROM job j JOIN job_state s ON s.job_no = j.job_no
         WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number AND j.standing = 0
           AND j.executor <> 'none') AS next_at,
       EXISTS (SELECT 1 FROM job j JOIN job_state s ON s.job_no = j.job_no
                WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number AND s.live > 0) AS is_live
FROM target t WHERE (t.tenant_no, t.number) > (?1, ?2) ORDER BY t.tenant_no, t.number LIMIT ?3
