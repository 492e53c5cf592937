UPDATE node n SET state = 3
 WHERE n.node_no = $1
   AND NOT EXISTS (SELECT FROM run r
                    WHERE r.scheduled_at >= n.oldest_open AND r.node_no = $1 AND r.status = 1)
   AND NOT EXISTS (SELECT FROM long_run l JOIN run r USING (scheduled_at, job_no, sequence, attempt)
                    WHERE l.node_no = $1 AND r.node_no = $1 AND r.status = 1);
