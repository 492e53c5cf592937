-- Any that are due, one shard after the other until there are enough: no more rows are read than are
-- told. For all shards at once (ANY), the planner would first gather whatever is due in a bitmap.
-- Since when a job runs: as in get_job.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), due AS MATERIALIZED (
    SELECT w.*
      FROM (SELECT DISTINCT shard FROM unnest($2::int2[]) AS d(shard)) AS d
     CROSS JOIN LATERAL (SELECT * FROM watch
                          WHERE shard = d.shard AND judge_at <= (SELECT now FROM clock)
                          ORDER BY judge_at LIMIT $3) AS w
     LIMIT $3
)
SELECT w.job_no, w.tenant_no, w.touched, w.level, s.active, s.next_at, s.last_fired_at, s.live > 0,
       s.last_start_at, s.last_end_at, s.last_good_start_at, s.last_good_end_at, s.failures,
       s.average_us, s.variance, coalesce(s.placed_at, j.created_at), j.definition,
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
       END
  FROM due w JOIN job_state s USING (job_no) JOIN job j USING (job_no);
