-- Times that were skipped while the ends of runs could not be stored: they are found along the links
-- from each chain to the one before, back to the moment from which on that is so. A first attempt
-- that was never claimed has its link in the queue.
WITH RECURSIVE chain AS (
    SELECT d.job_no, d.since, s.head_at AS at, s.head_sequence AS sequence, 0 AS depth
      FROM unnest($1::int8[], $2::int8[]) AS d(job_no, since) JOIN job_state s USING (job_no)
     WHERE s.head_at >= d.since
     UNION ALL
    SELECT c.job_no, c.since, p.prev_at, p.prev_sequence, c.depth + 1
      FROM chain c
     CROSS JOIN LATERAL (SELECT prev_at, prev_sequence FROM run
                          WHERE scheduled_at = c.at AND job_no = c.job_no AND sequence = c.sequence
                            AND attempt = 0
                          UNION
                         SELECT prev_at, prev_sequence FROM ready
                          WHERE scheduled_at = c.at AND job_no = c.job_no AND sequence = c.sequence
                            AND attempt = 0) AS p
     WHERE p.prev_at >= c.since AND c.depth < 1000
)
UPDATE run r
   SET skip_reason = $4
  FROM chain c
 WHERE r.scheduled_at = c.at AND r.job_no = c.job_no AND r.sequence = c.sequence AND r.attempt = 0
   AND r.status = 6 AND r.skip_reason = $3;
