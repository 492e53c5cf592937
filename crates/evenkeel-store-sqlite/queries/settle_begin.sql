-- What waited runs for the moment until its end is recorded; nobody sees that. One that was handed
-- back has a row, which goes on saying who had it.
INSERT INTO run (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, crashes, node_no,
                 prev_at, prev_sequence, number)
VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, 0, ?8, ?9,
        (SELECT executions FROM job_state WHERE job_no = ?2))
ON CONFLICT DO UPDATE SET status = 1, fence = excluded.fence, node_no = coalesce(node_no, 0)
RETURNING node_no
