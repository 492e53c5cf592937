SELECT d.key, d.job_id, d.taken_at, j.standing, s.next_at, s.live,
       (j.definition::json -> 'schedule' ->> 'kind') <> 'once' AS recurs,
       s.live > 0 AND (EXISTS (SELECT FROM ready q WHERE q.job_no = j.job_no)
                    OR EXISTS (SELECT FROM wake w WHERE w.job_no = j.job_no)) AS waits
  FROM dedup d JOIN job j ON j.id = d.job_id JOIN job_state s ON s.job_no = j.job_no
 WHERE d.tenant_no = $1 AND d.key = ANY ($2::uuid[]);
