-- Most jobs count for what they should: nothing is locked to see that. No run counts for more than 30
-- days. Jobs that count and have no next time should not be there; if some are, they count no more.
SELECT max(job_no), count(*),
       array_agg(job_no) FILTER (WHERE counted AND NOT is_over AND NOT cost_stated
                                   AND (cost_us * 5 < takes_us * 4 OR cost_us * 4 > takes_us * 5)),
       array_agg(job_no) FILTER (WHERE counted AND is_over)
  FROM (SELECT job_no, counted, slot IS NULL AS is_over, cost_stated,
               -- what was stated may be too large to be multiplied
               CASE WHEN NOT cost_stated THEN cost_us END AS cost_us,
               CASE WHEN average_us IS NOT NULL
                    THEN least(average_us, 2592000000000) END AS takes_us
          FROM job_state WHERE job_no > $1 ORDER BY job_no LIMIT $2) AS s;
