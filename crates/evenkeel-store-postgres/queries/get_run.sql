-- The attempt itself or, for attempt 0, the latest of its run; in the history or in the queue, or
-- if it is in neither, waiting for its time.
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, j.id, r.status, r.fence, r.crashes, r.node_no,
       n.name, r.number, r.started_at, r.finished_at, r.error, r.output, r.items_crawled,
       r.items_indexed, r.cpu_us, r.memory_kb, r.skipped_to, r.skipped_count, r.skip_reason,
       t.progress, t.log
  FROM (SELECT scheduled_at, job_no, sequence, attempt, status, fence, crashes, node_no, number, started_at,
               finished_at, error, output, items_crawled, items_indexed, cpu_us, memory_kb,
               skipped_to, skipped_count, skip_reason, false AS waits
          FROM run
         WHERE scheduled_at = $2 AND job_no = $3 AND sequence = $4 AND (attempt = $5 OR $5 = 0)
         UNION ALL
        SELECT q.scheduled_at, q.job_no, q.sequence, q.attempt, 0::int2, q.fence, q.crashes, NULL::int4,
               NULL::int8, NULL::int8, NULL::int8, NULL::text, NULL::text, NULL::int8, NULL::int8,
               NULL::int8, NULL::int8, NULL::int8, NULL::int8, NULL::int2, false
          FROM ready q
         WHERE scheduled_at = $2 AND job_no = $3 AND sequence = $4 AND (attempt = $5 OR $5 = 0)
           AND NOT EXISTS (SELECT FROM run e
                            WHERE e.scheduled_at = $2 AND e.job_no = $3 AND e.sequence = $4
                              AND e.attempt = q.attempt)
         UNION ALL
        SELECT scheduled_at, job_no, sequence, attempt, 0::int2, 0::int4, 0::int2, NULL::int4,
               NULL::int8, NULL::int8, NULL::int8, NULL::text, NULL::text, NULL::int8, NULL::int8,
               NULL::int8, NULL::int8, NULL::int8, NULL::int8, NULL::int2, true
          FROM wake
         WHERE scheduled_at = $2 AND job_no = $3 AND sequence = $4 AND (attempt = $5 OR $5 = 0)) AS r
  JOIN job j USING (job_no) LEFT JOIN node n USING (node_no)
  LEFT JOIN note t ON t.scheduled_at = r.scheduled_at AND t.job_no = r.job_no AND t.sequence = r.sequence
                  AND t.attempt = r.attempt AND t.fence = r.fence AND r.status = 1
 WHERE j.tenant_no = $1
 ORDER BY r.waits, r.attempt DESC LIMIT 1;
