-- What waited runs for the moment until its end is recorded; nobody sees that. One that was handed
-- back has a row, which goes on saying who had it.
INSERT INTO run AS r (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, crashes,
                      node_no, prev_at, prev_sequence)
VALUES ($1, $2, $3, $4, $5, 1, $6, $7, 0, $8, $9)
    ON CONFLICT (scheduled_at, job_no, sequence, attempt) DO UPDATE
   SET status = 1, fence = excluded.fence, node_no = coalesce(r.node_no, 0)
RETURNING node_no;
