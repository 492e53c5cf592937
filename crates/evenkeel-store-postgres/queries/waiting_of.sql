-- What waits of a job. What is before an attempt in its pool is counted in three stretches of
-- ready_order: that index is not all ascending, so that one comparison cannot say it.
SELECT a.scheduled_at, a.job_no, a.sequence, a.attempt, a.due, a.ready_at, a.open_from,
       a.open_until,
       CASE WHEN a.due IS NULL THEN
           (SELECT count(*)
              FROM ((SELECT 1 FROM ready b WHERE b.pool = a.pool AND b.lane < a.lane LIMIT $3)
                    UNION ALL
                    (SELECT 1 FROM ready b
                      WHERE b.pool = a.pool AND b.lane = a.lane AND b.priority > a.priority
                      LIMIT $3)
                    UNION ALL
                    (SELECT 1 FROM ready b
                      WHERE b.pool = a.pool AND b.lane = a.lane AND b.priority = a.priority
                        AND (b.should_start_by, b.ready_at, b.job_no)
                            < (a.should_start_by, a.ready_at, a.job_no)
                      LIMIT $3)
                    LIMIT $3) AS ahead)
       END AS ahead
  FROM (SELECT w.*
          FROM job j
         CROSS JOIN LATERAL (
               SELECT scheduled_at, job_no, sequence, attempt, NULL::int8 AS due, pool, lane,
                      priority, should_start_by, ready_at, open_from, open_until
                 FROM ready WHERE job_no = j.job_no
                UNION ALL
               SELECT scheduled_at, job_no, sequence, attempt, due, NULL, NULL, NULL, NULL, NULL,
                      NULL, NULL
                 FROM wake WHERE job_no = j.job_no) AS w
         WHERE j.id = $1 AND j.tenant_no = $2 AND j.standing <> 3
         ORDER BY w.scheduled_at, w.sequence, w.attempt
         LIMIT $4) AS a
 ORDER BY a.scheduled_at, a.sequence, a.attempt;
