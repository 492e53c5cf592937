INSERT INTO run (scheduled_at, job_no, sequence, attempt, tenant_no, status, crashes, fence,
                 node_no, prev_at, prev_sequence, number, started_at, priority)
VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9, ?10,
        (SELECT executions FROM job_state WHERE job_no = ?2), ?11, ?12)
