-- Since when a job runs: as in get_job.
SELECT j.job_no, j.id, j.tenant_no, j.about, j.definition, j.standing, s.generation, j.created_at,
       j.updated_at, s.next_at, s.last_fired_at, s.live,
       (SELECT count(*) FROM ready q WHERE q.job_no = j.job_no)
     + (SELECT count(*) FROM wake w WHERE w.job_no = j.job_no) AS waiting,
       s.executions, s.last_status, s.last_start_at, s.last_end_at, s.last_good_start_at,
       s.last_good_end_at, s.failures, s.average_us, s.variance,
       coalesce(s.placed_at, j.created_at) AS since, s.fired,
       CASE WHEN s.live > 0 THEN (
           WITH RECURSIVE newest AS (
               SELECT s.head_at AS at, s.head_sequence AS sequence, 0 AS depth
                UNION ALL
               SELECT p.prev_at, p.prev_sequence, n.depth + 1
                 FROM newest n
                CROSS JOIN LATERAL (
                      SELECT prev_at, prev_sequence FROM run r
                       WHERE r.scheduled_at = n.at AND r.job_no = s.job_no
                         AND r.sequence = n.sequence AND r.attempt = 0 AND r.status = 6
                       UNION ALL
                      SELECT prev_at, prev_sequence FROM ready q
                       WHERE q.scheduled_at = n.at AND q.job_no = s.job_no
                         AND q.sequence = n.sequence AND q.attempt = 0
                         AND NOT EXISTS (SELECT FROM run r
                                          WHERE r.scheduled_at = n.at AND r.job_no = s.job_no
                                            AND r.sequence = n.sequence)) AS p
                WHERE p.prev_at IS NOT NULL AND n.depth < 1000
           )
           SELECT r.started_at
             FROM (SELECT * FROM newest ORDER BY depth DESC LIMIT 1) AS n
             JOIN run r ON r.scheduled_at = n.at AND r.job_no = s.job_no AND r.sequence = n.sequence
            WHERE r.status = 1 LIMIT 1)
       END AS running_since
  FROM job j JOIN job_state s USING (job_no)
 WHERE j.job_no = ANY ($1::int8[]) AND j.standing <> 3;
