-- Attempts that a node runs.

-- :name find_owned
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.fence, r.tenant_no, r.started_at, r.crashes,
       j.definition, r.priority
  FROM unnest($2::int8[], $3::int8[], $4::int4[], $5::int2[])
       AS d(job_no, scheduled_at, sequence, attempt)
  JOIN attempt r USING (scheduled_at, job_no, sequence, attempt) JOIN job j USING (job_no)
 WHERE r.node_no = $1 AND r.status = 1;

-- :name owned
-- Attempts for a time before oldest_open are all in long_run.
SELECT r.scheduled_at, r.job_no, r.sequence, r.attempt, r.fence, r.tenant_no, r.started_at, r.crashes,
       j.definition, r.priority
  FROM (SELECT r.* FROM attempt r
         WHERE r.scheduled_at >= (SELECT low_watermark FROM node WHERE node_no = $1)
           AND r.node_no = $1 AND r.status = 1
         UNION ALL
        SELECT r.* FROM long_attempt l JOIN attempt r USING (scheduled_at, job_no, sequence, attempt)
         WHERE l.node_no = $1 AND r.node_no = $1 AND r.status = 1
           AND r.scheduled_at < (SELECT low_watermark FROM node WHERE node_no = $1)
         LIMIT $2) AS r
  JOIN job j USING (job_no);
