SELECT t.number, t.source_id, t.name, t.url, t.generation, t.created_at, t.updated_at,
       nullif(max(coalesce(t.last_success_at, 0), coalesce((
           SELECT max(s.last_good_end_at)
           FROM job j JOIN job_state s ON s.job_no = j.job_no
           WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number
             AND s.last_good_end_at > coalesce(j.target_since, 0)), 0)), 0) AS last_success_at,
       (SELECT count(*) FROM job j
         WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number) AS jobs
FROM target t WHERE t.tenant_no = ?1 AND t.number > ?2 ORDER BY t.number LIMIT ?3 OFFSET ?4
