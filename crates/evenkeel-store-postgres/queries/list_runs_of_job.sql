-- One job's attempts, along the links from each chain to the one before. A first attempt that was
-- never claimed has its link in the queue. Starts at the newest chain, or at the given one.
WITH RECURSIVE chain AS (
    SELECT coalesce($2, head_at) AS at, coalesce($3, head_sequence) AS sequence, 0 AS depth
      FROM job_state WHERE job_no = $1 AND coalesce($2, head_at) IS NOT NULL
     UNION ALL
    SELECT p.prev_at, p.prev_sequence, c.depth + 1
      FROM chain c
     CROSS JOIN LATERAL (SELECT prev_at, prev_sequence FROM run
                          WHERE scheduled_at = c.at AND job_no = $1 AND sequence = c.sequence
                            AND attempt = 0
                          UNION
                         SELECT prev_at, prev_sequence FROM ready
                          WHERE scheduled_at = c.at AND job_no = $1 AND sequence = c.sequence
                            AND attempt = 0) AS p
     WHERE p.prev_at IS NOT NULL AND c.depth < $5::int8
)
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, j.id, r.status, r.fence, r.crashes, r.node_no,
       n.name, r.number, r.started_at, r.finished_at, r.error, left(r.output, 65536), r.items_crawled,
       r.items_indexed, r.cpu_us, r.memory_kb, r.skipped_to, r.skipped_count, r.skip_reason
  FROM chain c
 CROSS JOIN LATERAL (
        SELECT scheduled_at, job_no, sequence, attempt, status, fence, crashes, node_no, number, started_at,
               finished_at, error, output, items_crawled, items_indexed, cpu_us, memory_kb,
               skipped_to, skipped_count, skip_reason
          FROM run WHERE scheduled_at = c.at AND job_no = $1 AND sequence = c.sequence
         UNION ALL
        SELECT q.scheduled_at, q.job_no, q.sequence, q.attempt, 0::int2, q.fence, q.crashes, NULL::int4,
               NULL::int8, NULL::int8, NULL::int8, NULL::text, NULL::text, NULL::int8, NULL::int8,
               NULL::int8, NULL::int8, NULL::int8, NULL::int8, NULL::int2
          FROM ready q
         WHERE scheduled_at = c.at AND job_no = $1 AND sequence = c.sequence
           AND NOT EXISTS (SELECT FROM run e
                            WHERE e.scheduled_at = c.at AND e.job_no = $1
                              AND e.sequence = c.sequence AND e.attempt = q.attempt)) AS r
  JOIN job j USING (job_no) LEFT JOIN node n USING (node_no)
 WHERE c.depth > 0 OR r.attempt < $4
 ORDER BY c.depth, r.attempt DESC LIMIT $5;
