-- All of a tenant's attempts before a key, newest first: the history merged with the queue.
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, j.id, r.status, r.fence, r.crashes, r.node_no,
       n.name, r.number, r.started_at, r.finished_at, r.error, left(r.output, 65536), r.items_crawled,
       r.items_indexed, r.cpu_us, r.memory_kb, r.skipped_to, r.skipped_count, r.skip_reason
  FROM ((SELECT scheduled_at, job_no, sequence, attempt, status, fence, crashes, node_no, number, started_at,
               finished_at, error, output, items_crawled, items_indexed, cpu_us, memory_kb,
               skipped_to, skipped_count, skip_reason
           FROM run
          WHERE tenant_no = $1
            AND (scheduled_at, job_no, sequence, attempt) < ($2::int8, $3::int8, $4::int4, $5::int2)
          ORDER BY scheduled_at DESC, job_no DESC, sequence DESC, attempt DESC LIMIT $6)
        UNION ALL
        (SELECT q.scheduled_at, q.job_no, q.sequence, q.attempt, 0::int2, q.fence, q.crashes, NULL::int4,
               NULL::int8, NULL::int8, NULL::int8, NULL::text, NULL::text, NULL::int8, NULL::int8,
               NULL::int8, NULL::int8, NULL::int8, NULL::int8, NULL::int2
           FROM ready q
          WHERE tenant_no = $1
            AND (scheduled_at, job_no, sequence, attempt) < ($2::int8, $3::int8, $4::int4, $5::int2)
            AND NOT EXISTS (SELECT FROM run e
                             WHERE e.scheduled_at = q.scheduled_at AND e.job_no = q.job_no
                               AND e.sequence = q.sequence AND e.attempt = q.attempt)
          ORDER BY scheduled_at DESC, job_no DESC, sequence DESC, attempt DESC LIMIT $6)) AS r
  JOIN job j USING (job_no) LEFT JOIN node n USING (node_no)
 ORDER BY r.scheduled_at DESC, r.job_no DESC, r.sequence DESC, r.attempt DESC LIMIT $6;
