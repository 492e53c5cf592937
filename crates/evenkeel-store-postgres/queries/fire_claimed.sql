-- The common batch: each job starts at the time it was due, claimed at once, and skips nothing.
-- The node's row is locked against whoever would declare it dead, and against nobody else: what
-- this commits is there before the search for a dead node's attempts begins.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), alive AS MATERIALIZED (
    SELECT oldest_open FROM node WHERE node_no = $2 AND state = 0 FOR KEY SHARE
), fired AS (
    UPDATE job_state s
       SET next_at = d.next_at, slot = d.slot, last_fired_at = greatest(s.last_fired_at, d.due),
           head_at = d.due, head_sequence = 0, live = s.live + 1, executions = s.executions + 1,
           fired = s.fired + 1
      FROM unnest($3::int8[], $4::int4[], $5::int8[], $6::int8[], $7::int4[], $8::int8[],
                  $9::int4[], $10::bool[])
           AS d(job_no, generation, due, head_at, head_sequence, next_at, slot, idle_only)
     WHERE s.job_no = d.job_no AND s.next_at = d.due AND s.generation = d.generation AND s.active
       AND s.head_at IS NOT DISTINCT FROM d.head_at
       AND s.head_sequence IS NOT DISTINCT FROM d.head_sequence
       AND (s.live = 0 OR NOT d.idle_only)
       AND d.due <= (SELECT now FROM clock) AND EXISTS (SELECT FROM alive)
 RETURNING s.job_no, s.tenant_no, s.executions, d.due, d.head_at, d.head_sequence
), started AS (
    INSERT INTO run (scheduled_at, job_no, sequence, attempt, tenant_no, status, fence, node_no,
                     prev_at, prev_sequence, number, started_at)
    SELECT due, job_no, 0, 0, tenant_no, 1, 1, $2, head_at, head_sequence, executions,
           (SELECT now FROM clock)
      FROM fired
), reached AS (
    UPDATE node SET oldest_open = least(oldest_open, earliest),
                    reached_back_to = least(reached_back_to, earliest)
      FROM (SELECT min(due) AS earliest FROM fired) AS f
     WHERE node_no = $2
       AND (oldest_open > earliest OR reached_back_to IS NULL OR reached_back_to > earliest)
)
SELECT (SELECT now FROM clock), EXISTS (SELECT FROM alive), array_agg(job_no) FROM fired;
