SELECT t.tenant_no, t.number, t.created_at,
       greatest(t.last_success_at, past.last_success_at) AS last_success_at, next.job, next.next_at,
       coalesce(past.is_live, false) AS is_live
  FROM (SELECT tenant_no, number, created_at, last_success_at FROM target
         WHERE (tenant_no, number) > ($1, $2) ORDER BY tenant_no, number LIMIT $3) AS t
 CROSS JOIN LATERAL (
       SELECT max(s.last_good_end_at) FILTER (WHERE s.last_good_end_at > coalesce(j.target_since, 0))
              AS last_success_at,
              bool_or(s.live > 0) AS is_live
         FROM job j JOIN job_state s USING (job_no)
        WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number) AS past
 CROSS JOIN LATERAL (
       SELECT (array_agg(j.id ORDER BY j.job_no))[1] AS job, min(s.next_at) AS next_at
         FROM job j JOIN job_state s USING (job_no)
        WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number AND j.standing = 0
          AND j.executor <> 'none') AS next
 ORDER BY t.tenant_no, t.number;
