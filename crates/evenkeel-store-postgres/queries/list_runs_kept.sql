-- A job's newest good and newest failed attempt, if what linked to them is forgotten.
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, j.id, r.status, r.fence, r.crashes, r.node_no,
       n.name, r.number, r.started_at, r.finished_at, r.error, left(r.output, 65536), r.items_crawled,
       r.items_indexed, r.cpu_us, r.memory_kb, r.skipped_to, r.skipped_count, r.skip_reason
  FROM job_state s
  JOIN run r ON r.job_no = s.job_no
            AND (r.scheduled_at = s.good_at AND r.status IN (2, 7)
                 OR r.scheduled_at = s.failed_at AND r.status IN (3, 5))
  JOIN job j ON j.job_no = s.job_no LEFT JOIN node n USING (node_no)
 WHERE s.job_no = $1 AND r.scheduled_at IN (s.good_at, s.failed_at) AND r.scheduled_at < $2
 ORDER BY r.scheduled_at DESC, r.sequence DESC, r.attempt DESC;
