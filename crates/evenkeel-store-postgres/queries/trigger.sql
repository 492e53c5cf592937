-- Triggering runs.

-- :name trigger (now, id, tenant, sequence, priority)
-- Handles the common case in one statement: the job is active and idle, so it may start under any
-- overlap policy; it has no deduplication key, and the sequence number is free. A transaction that
-- starts another run or stops the job locks the job's row in job_state, and the conditions on that
-- row are checked again after the lock.
WITH clock AS MATERIALIZED (SELECT {clock} AS now), opened AS (
    UPDATE job_state s SET live = s.live + 1
      FROM job j, clock c
     WHERE j.id = :id AND j.tenant_no = :tenant AND j.state = {job.active} AND j.dedup_key IS NULL
       AND s.job_no = j.job_no
       AND s.live = 0 AND s.stopped_at IS NULL
       -- one NOT around all subqueries, so that rows are looked up one by one and never joined
       AND NOT (EXISTS (SELECT FROM attempt r
                         WHERE r.scheduled_at = c.now AND r.job_no = s.job_no
                           AND r.sequence = :sequence)
             OR EXISTS (SELECT FROM ready q
                         WHERE q.scheduled_at = c.now AND q.job_no = s.job_no
                           AND q.sequence = :sequence)
             OR EXISTS (SELECT FROM delayed_attempt w
                         WHERE w.scheduled_at = c.now AND w.job_no = s.job_no
                           AND w.sequence = :sequence))
 RETURNING s.shard, s.job_no, s.tenant_no, s.has_condition, c.now
), delayed AS (
    INSERT INTO delayed_attempt (shard, due, scheduled_at, job_no, sequence, attempt, tenant_no,
                                 priority)
    SELECT shard, now, now, job_no, :sequence, 0, tenant_no, :priority::int2 FROM opened
), touched AS (
    INSERT INTO job_condition (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM opened WHERE has_condition
        {on_conflict_judge_again}
)
SELECT job_no, now FROM opened;

-- :name trigger_open (job_no, at, sequence, priority)
WITH opened AS (
    UPDATE job_state SET live = live + 1 WHERE job_no = :job_no
 RETURNING shard, job_no, tenant_no, has_condition
), touched AS (
    INSERT INTO job_condition (job_no, tenant_no, shard, judge_at)
    SELECT job_no, tenant_no, shard, 0 FROM opened WHERE has_condition
        {on_conflict_judge_again}
)
INSERT INTO delayed_attempt (shard, due, scheduled_at, job_no, sequence, attempt, tenant_no,
                             priority)
SELECT shard, :at, :at, job_no, :sequence, 0, tenant_no, :priority::int2 FROM opened;

-- :name trigger_run_instead
-- Returns the runs that may be reported for a rejected duplicate trigger: the pending run of the
-- job, its next run time, and its newest run.
SELECT s.next_at, w.scheduled_at, w.sequence, s.head_at, s.head_sequence
  FROM job_state s
  LEFT JOIN LATERAL (
       SELECT scheduled_at, sequence, attempt FROM ready q WHERE q.job_no = s.job_no
        UNION ALL
       SELECT scheduled_at, sequence, attempt FROM delayed_attempt w WHERE w.job_no = s.job_no
        ORDER BY scheduled_at DESC, sequence DESC, attempt DESC LIMIT 1) AS w ON true
 WHERE s.job_no = $1;

-- :name trigger_sequences_at (scheduled_at, job_no)
WITH d AS MATERIALIZED (
    SELECT * FROM unnest(:scheduled_at::int8[], :job_no::int8[]) AS d(scheduled_at, job_no)
)
SELECT job_no, sequence FROM d JOIN attempt USING (scheduled_at, job_no)
 UNION
SELECT job_no, sequence FROM d JOIN ready USING (scheduled_at, job_no)
 UNION
SELECT job_no, sequence FROM d JOIN delayed_attempt USING (scheduled_at, job_no);
