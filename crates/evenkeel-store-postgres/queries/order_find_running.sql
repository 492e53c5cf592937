-- Finds what runs of jobs along the links of their chains, as far back as it has to and may (a first
-- attempt that was never claimed has its link in the queue), and asks it to end where it is to.
WITH RECURSIVE busy AS MATERIALIZED (
    SELECT d.job_no, d.running, d.ends, s.head_at, s.head_sequence
      FROM unnest($1::int8[], $2::int8[], $3::bool[]) AS d(job_no, running, ends)
      JOIN job_state s USING (job_no)
), chain AS (
    SELECT job_no, head_at AS at, head_sequence AS sequence, 0 AS depth, running, ends
      FROM busy WHERE head_at IS NOT NULL
     UNION ALL
    SELECT c.job_no, p.prev_at, p.prev_sequence, c.depth + 1, c.running - p.running, c.ends
      FROM chain c
     CROSS JOIN LATERAL (SELECT max(prev_at) AS prev_at, max(prev_sequence) AS prev_sequence,
                                count(*) FILTER (WHERE status = 1) AS running
                           FROM (SELECT prev_at, prev_sequence, status FROM run r
                                  WHERE r.scheduled_at = c.at AND r.job_no = c.job_no
                                    AND r.sequence = c.sequence
                                  UNION ALL
                                 SELECT prev_at, prev_sequence, 0 FROM ready q
                                  WHERE q.scheduled_at = c.at AND q.job_no = c.job_no
                                    AND q.sequence = c.sequence) AS a) AS p
     WHERE p.prev_at IS NOT NULL AND c.running > p.running AND c.depth < 10000
), running AS (
    SELECT r.node_no, r.scheduled_at, r.job_no, r.sequence, r.attempt, c.ends
      FROM chain c JOIN run r ON r.scheduled_at = c.at AND r.job_no = c.job_no
                             AND r.sequence = c.sequence
     WHERE r.status = 1
), asked AS (
    INSERT INTO cancellation (node_no, scheduled_at, job_no, sequence, attempt)
    SELECT node_no, scheduled_at, job_no, sequence, attempt FROM running WHERE ends
        ON CONFLICT DO NOTHING
)
SELECT scheduled_at, job_no, sequence, attempt FROM running;
