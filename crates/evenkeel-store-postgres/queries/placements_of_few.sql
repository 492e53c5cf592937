-- As in placements, for a tenant whose jobs are few among those of others: each is looked up. OFFSET 0
-- keeps the order of the joins.
SELECT j.job_no, j.id, s.generation, s.next_at, s.last_fired_at,
       coalesce(s.placed_at, j.created_at), s.live > 0, s.rhythm, s.cost_us
  FROM job j
 CROSS JOIN LATERAL (SELECT generation, next_at, last_fired_at, placed_at, live, rhythm, cost_us
                       FROM job_state
                      WHERE job_no = j.job_no AND active AND slot IS NOT NULL OFFSET 0) AS s
 WHERE j.tenant_no = $1 AND j.standing <> 3 AND j.job_no BETWEEN $2 AND $3
 ORDER BY j.job_no;
