-- Attempts that were taken out of the queue begin. One that had been given back has a row.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), d AS MATERIALIZED (
    SELECT *, row_number() OVER (PARTITION BY job_no ORDER BY scheduled_at, sequence, attempt)
              AS nth
      FROM unnest($3::int8[], $4::int8[], $5::int4[], $6::int2[], $7::int4[], $8::int4[],
                  $9::int2[], $10::int8[], $11::int4[], $12::int2[])
           AS d(job_no, scheduled_at, sequence, attempt, tenant_no, fence, crashes, prev_at,
                prev_sequence, priority)
), locked AS MATERIALIZED (
    SELECT d.*, s.executions
      FROM (SELECT * FROM d ORDER BY job_no) AS d JOIN job_state s USING (job_no)
       FOR NO KEY UPDATE OF s
), counted AS (
    UPDATE job_state s SET executions = s.executions + l.n
      FROM (SELECT job_no, count(*) AS n FROM locked GROUP BY job_no ORDER BY job_no) AS l
     WHERE s.job_no = l.job_no
), started AS (
    INSERT INTO run AS r (scheduled_at, job_no, sequence, attempt, tenant_no, status, crashes,
                          fence, node_no, prev_at, prev_sequence, number, started_at,
                          priority)
    SELECT scheduled_at, job_no, sequence, attempt, tenant_no, 1, crashes, fence + 1, $2, prev_at,
           prev_sequence, executions + nth, (SELECT now FROM clock), priority
      FROM locked
        ON CONFLICT (scheduled_at, job_no, sequence, attempt) DO UPDATE
       SET status = 1, fence = excluded.fence, crashes = excluded.crashes, node_no = excluded.node_no,
           number = excluded.number, started_at = excluded.started_at,
           priority = excluded.priority
), reached AS (
    UPDATE node SET oldest_open = least(oldest_open, earliest),
                    reached_back_to = least(reached_back_to, earliest)
      FROM (SELECT min(scheduled_at) AS earliest FROM d) AS d
     WHERE node_no = $2
)
SELECT (SELECT now FROM clock), d.scheduled_at, d.job_no, d.sequence, d.attempt, j.definition,
       -- not a join, which a plan made while there were none might do the wrong way round
       (SELECT c.data FROM checkpoint c
         WHERE c.scheduled_at = d.scheduled_at AND c.job_no = d.job_no
           AND c.sequence = d.sequence)
  FROM d JOIN job j USING (job_no);
