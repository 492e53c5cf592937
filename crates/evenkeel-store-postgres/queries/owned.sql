-- Attempts that a node runs.

-- :fragment owned_columns
r.scheduled_at, r.job_no, r.sequence, r.attempt, r.fence, r.tenant_no, r.started_at, r.crashes,
       j.definition, r.priority

-- :name find_owned (node, job_no, scheduled_at, sequence, attempt)
SELECT {owned_columns}
  FROM unnest(:job_no::int8[], :scheduled_at::int8[], :sequence::int4[], :attempt::int2[])
       AS d(job_no, scheduled_at, sequence, attempt)
  JOIN attempt r USING (scheduled_at, job_no, sequence, attempt) JOIN job j USING (job_no)
 WHERE r.node_no = :node AND r.status = {attempt.running};

-- :name owned (node, limit)
-- All attempts with a scheduled time before low_watermark are in long_attempt.
SELECT {owned_columns}
  FROM (SELECT r.* FROM attempt r
         WHERE r.scheduled_at >= (SELECT low_watermark FROM node WHERE node_no = :node)
           AND r.node_no = :node AND r.status = {attempt.running}
         UNION ALL
        SELECT r.* FROM long_attempt l JOIN attempt r USING (scheduled_at, job_no, sequence,
                                                             attempt)
         WHERE l.node_no = :node AND r.node_no = :node AND r.status = {attempt.running}
           AND r.scheduled_at < (SELECT low_watermark FROM node WHERE node_no = :node)
         LIMIT :limit) AS r
  JOIN job j USING (job_no);
