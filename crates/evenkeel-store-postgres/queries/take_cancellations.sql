-- What has ended meanwhile needs no ending.
WITH told AS (
    DELETE FROM cancellation WHERE node_no = $1
 RETURNING scheduled_at, job_no, sequence, attempt
)
SELECT scheduled_at, job_no, sequence, attempt
  FROM told JOIN run r USING (scheduled_at, job_no, sequence, attempt)
 WHERE r.node_no = $1 AND r.status = 1;
