-- Loading the jobs that are due soon.

-- :fragment due_job_state
s.generation, s.live, s.head_at, s.head_sequence, s.last_start_at, s.last_end_at,
       s.last_good_start_at, s.last_good_end_at, s.failures, s.average_us, s.variance,
       coalesce(s.placed_at, j.created_at) AS since, s.fired, j.definition

-- :fragment due_job_columns
-- The function due_job reads these columns.
s.job_no, s.tenant_no, CASE WHEN s.active THEN s.next_at END AS next_at, {due_job_state}

-- :fragment active_job_columns
s.job_no, s.tenant_no, s.next_at, {due_job_state}

-- :name load_due (shard, until, after, limit)
-- Finds the due jobs first, by their index. If the statement asked for the first jobs in order, the
-- planner would scan all jobs of the table in that order.
WITH due AS MATERIALIZED (
    SELECT job_no, tenant_no, next_at, generation, live, head_at, head_sequence, last_start_at,
           last_end_at, last_good_start_at, last_good_end_at, failures, average_us, variance,
           placed_at, fired
      FROM job_state
     WHERE shard = :shard AND slot <= :until AND active AND job_no > :after
)
SELECT {active_job_columns}
  FROM (SELECT * FROM due ORDER BY job_no LIMIT :limit) AS s JOIN job j USING (job_no)
 ORDER BY s.job_no;

-- :name load_jobs
SELECT {due_job_columns}
  FROM unnest($1::int8[]) AS d(job_no) JOIN job_state s USING (job_no) JOIN job j USING (job_no)
 WHERE s.stopped_at IS DISTINCT FROM {stopped.for_good};

-- :name look_ahead_changed (shards, limit)
-- Finds the rows once and deletes them by ctid, whatever the planner estimates for a table that is
-- mostly empty.
WITH changed AS (
    DELETE FROM changed_job
     WHERE ctid = ANY (ARRAY(SELECT ctid FROM changed_job WHERE shard = ANY (:shards::int2[])
                              LIMIT :limit FOR UPDATE SKIP LOCKED))
 RETURNING job_no
)
SELECT {due_job_columns}
  FROM changed JOIN job_state s USING (job_no) JOIN job j USING (job_no)
 WHERE s.stopped_at IS DISTINCT FROM {stopped.for_good};
