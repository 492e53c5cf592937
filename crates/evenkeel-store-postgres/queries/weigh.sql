-- Most jobs count for what they should: nothing is locked to see that.
SELECT max(job_no), count(*),
       array_agg(job_no) FILTER (WHERE counted AND NOT cost_stated
                                   AND (cost_us * 5 < average_us * 4 OR cost_us * 4 > average_us * 5))
  FROM (SELECT job_no, counted, cost_stated,
               -- what was stated may be too large to be multiplied
               CASE WHEN NOT cost_stated THEN cost_us END AS cost_us, average_us
          FROM job_state WHERE job_no > $1 ORDER BY job_no LIMIT $2) AS s;
