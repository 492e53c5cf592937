-- What there is of a job in place of a run that is not to be: what waits of it, and its newest chain.
SELECT s.next_at, w.scheduled_at, w.sequence, s.head_at, s.head_sequence
  FROM job_state s
  LEFT JOIN LATERAL (
       SELECT scheduled_at, sequence, attempt FROM ready q WHERE q.job_no = s.job_no
        UNION ALL
       SELECT scheduled_at, sequence, attempt FROM wake w WHERE w.job_no = s.job_no
        ORDER BY scheduled_at DESC, sequence DESC, attempt DESC LIMIT 1) AS w ON true
 WHERE s.job_no = $1;
