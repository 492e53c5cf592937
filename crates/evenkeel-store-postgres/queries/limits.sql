-- Concurrency limits: permits and limit queues.

-- :name claim_to_limit_queue (scheduled_at, job_no, sequence, attempt, queue, max)
-- Moves attempts to limit queues. Rows that other transactions have locked are skipped.
WITH free AS MATERIALIZED (
    SELECT q.ctid, d.queue, d.max
      FROM unnest(:scheduled_at::int8[], :job_no::int8[], :sequence::int4[], :attempt::int2[],
                  :queue::text[], :max::int4[])
           AS d(scheduled_at, job_no, sequence, attempt, queue, max)
     CROSS JOIN LATERAL (
           SELECT q.ctid FROM ready q
            WHERE q.scheduled_at = d.scheduled_at AND q.job_no = d.job_no
              AND q.sequence = d.sequence AND q.attempt = d.attempt AND q.home_pool IS NULL
              FOR UPDATE SKIP LOCKED) AS q
)
UPDATE ready q SET home_pool = q.pool, pool = f.queue, limited_by_max = f.max
  FROM free f WHERE q.ctid = f.ctid;

-- :name claim_permit_count
SELECT k.nth, (SELECT count(*) FROM permit p WHERE p.key = k.key)
  FROM unnest($1::bytea[]) WITH ORDINALITY AS k(key, nth);

-- :name claim_permit_lock
-- A transaction that grants permits of a limit holds the lock of that limit until it ends. The
-- transaction does not wait for these locks, because transactions take them in any order.
SELECT k.nth, pg_try_advisory_xact_lock(hashtextextended(
                  'evenkeel permit ' || current_schema() || ' ' || encode(k.key, 'hex'), 0))
  FROM unnest($1::bytea[]) WITH ORDINALITY AS k(key, nth);

-- :name claim_permit_sweep
-- Deletes permits of attempts that are not running. The caller holds the locks of the limits. A
-- subquery reads the status, because a join planned while the table was empty might scan it for
-- each row.
DELETE FROM permit
 WHERE ctid = ANY (ARRAY(
           SELECT p.ctid FROM unnest($1::bytea[]) AS k(key)
            CROSS JOIN LATERAL (
                  SELECT p.ctid FROM permit p
                   WHERE p.key = k.key
                     AND coalesce((SELECT r.status FROM attempt r
                                    WHERE r.scheduled_at = p.scheduled_at AND r.job_no = p.job_no
                                      AND r.sequence = p.sequence AND r.attempt = p.attempt),
                                  {attempt.pending}) <> {attempt.running}
                     FOR UPDATE SKIP LOCKED) AS p));

-- :name claim_permit_take (key, scheduled_at, job_no, sequence, attempt)
-- A requeued attempt may still hold its permit.
INSERT INTO permit (key, scheduled_at, job_no, sequence, attempt)
SELECT * FROM unnest(:key::bytea[], :scheduled_at::int8[], :job_no::int8[], :sequence::int4[],
                     :attempt::int2[])
    ON CONFLICT DO NOTHING;

-- :name prune_permits (after_key, after_at, after_job_no, after_sequence, after_attempt, limit)
-- Scans one page of permits and deletes the permits of finished attempts.
WITH page AS MATERIALIZED (
    SELECT ctid, key, scheduled_at, job_no, sequence, attempt
      FROM permit
     WHERE (key, scheduled_at, job_no, sequence, attempt)
           > (:after_key::bytea, :after_at::int8, :after_job_no::int8, :after_sequence::int4,
              :after_attempt::int2)
     ORDER BY key, scheduled_at, job_no, sequence, attempt LIMIT :limit
), deleted AS (
    DELETE FROM permit
     WHERE ctid = ANY (ARRAY(
               SELECT p.ctid FROM page p
                WHERE coalesce((SELECT r.status FROM attempt r
                                 WHERE r.scheduled_at = p.scheduled_at AND r.job_no = p.job_no
                                   AND r.sequence = p.sequence AND r.attempt = p.attempt),
                               {attempt.completed}) NOT IN ({attempts.unfinished})))
)
SELECT (SELECT count(*) FROM page) AS scanned, key, scheduled_at, job_no, sequence, attempt
  FROM page ORDER BY key DESC, scheduled_at DESC, job_no DESC, sequence DESC, attempt DESC LIMIT 1;

-- :name release_limited (scheduled_at, job_no, sequence, attempt, from_pool, to_pool, max)
-- Moves attempts from limit queues to their pool or to another limit queue. Attempts that have left
-- their limit queue, or that another transaction has locked, are skipped.
WITH free AS MATERIALIZED (
    SELECT q.ctid, d.queue, d.max
      FROM unnest(:scheduled_at::int8[], :job_no::int8[], :sequence::int4[], :attempt::int2[],
                  :from_pool::text[], :to_pool::text[], :max::int4[])
           AS d(scheduled_at, job_no, sequence, attempt, from_pool, queue, max)
     CROSS JOIN LATERAL (
           SELECT q.ctid FROM ready q
            WHERE q.scheduled_at = d.scheduled_at AND q.job_no = d.job_no
              AND q.sequence = d.sequence AND q.attempt = d.attempt
              AND q.home_pool IS NOT NULL AND q.pool = d.from_pool
              FOR UPDATE SKIP LOCKED) AS q
), moved AS (
    UPDATE ready q
       SET pool = coalesce(f.queue, q.home_pool),
           home_pool = CASE WHEN f.queue IS NOT NULL THEN q.home_pool END, limited_by_max = f.max
      FROM free f WHERE q.ctid = f.ctid
    RETURNING f.queue
)
SELECT count(*) FILTER (WHERE queue IS NULL) FROM moved;

-- :name release_find (pool, count, now)
-- The first attempts of each lane of each limit queue, by priority and by waiting time, which
-- include the highest-ranking attempts.
WITH clock AS MATERIALIZED (SELECT {clock} AS now)
SELECT {candidate_columns}, d.nth, (SELECT now FROM clock)
  FROM unnest(:pool::text[], :count::int8[]) WITH ORDINALITY AS d(pool, count, nth)
 CROSS JOIN unnest('{{lanes.all}}'::int2[]) AS l(lane)
 CROSS JOIN LATERAL (SELECT ctid, * FROM ready
                      WHERE pool = d.pool AND lane = l.lane
                        AND {is_open}
                      ORDER BY priority DESC, should_start_by, since, job_no
                      LIMIT d.count) AS c
 UNION ALL
SELECT {candidate_columns}, d.nth, (SELECT now FROM clock)
  FROM unnest(:pool::text[], :count::int8[]) WITH ORDINALITY AS d(pool, count, nth)
 CROSS JOIN unnest('{{lanes.all}}'::int2[]) AS l(lane)
 CROSS JOIN LATERAL (SELECT ctid, * FROM ready
                      WHERE pool = d.pool AND lane = l.lane
                        AND {is_open}
                      ORDER BY rise, should_start_by, since, job_no
                      LIMIT d.count) AS c;

-- :name release_queues (after_pool, limit)
-- The next limit queues, one index step each. For each queue it returns the lowest and highest
-- limit in the queue and the number of permits, including permits of finished attempts.
WITH RECURSIVE limit_queue AS (
    (SELECT pool, 1 AS nth FROM ready WHERE home_pool IS NOT NULL AND pool > :after_pool
      ORDER BY pool LIMIT 1)
    UNION ALL
    SELECT next.pool, limit_queue.nth + 1
      FROM limit_queue
     CROSS JOIN LATERAL (SELECT pool FROM ready
                          WHERE home_pool IS NOT NULL AND pool > limit_queue.pool
                          ORDER BY pool LIMIT 1) AS next
     WHERE limit_queue.nth < :limit::int8
)
SELECT l.pool,
       (SELECT min(q.limited_by_max) FROM ready q
         WHERE q.home_pool IS NOT NULL AND q.pool = l.pool) AS lowest,
       (SELECT max(q.limited_by_max) FROM ready q
         WHERE q.home_pool IS NOT NULL AND q.pool = l.pool) AS highest,
       (SELECT count(*) FROM permit p WHERE p.key = decode(substr(l.pool, 2), 'hex')) AS permits
  FROM limit_queue l ORDER BY l.nth;

-- :name release_running
-- The number of permits whose attempts are running.
SELECT k.nth, (SELECT count(*) FROM permit p
                WHERE p.key = k.key
                  AND (SELECT e.status FROM attempt e
                        WHERE e.scheduled_at = p.scheduled_at AND e.job_no = p.job_no
                          AND e.sequence = p.sequence
                          AND e.attempt = p.attempt) = {attempt.running})
  FROM unnest($1::bytea[]) WITH ORDINALITY AS k(key, nth);

-- :name release_delete_permits (key, scheduled_at, job_no, sequence, attempt)
-- A finished attempt never runs again, so its permit is deleted without the lock of the limit.
DELETE FROM permit
 WHERE ctid = ANY (ARRAY(
           SELECT p.ctid
             FROM unnest(:key::bytea[], :scheduled_at::int8[], :job_no::int8[], :sequence::int4[],
                         :attempt::int2[])
                  AS d(key, scheduled_at, job_no, sequence, attempt)
            CROSS JOIN LATERAL (
                  SELECT p.ctid FROM permit p
                   WHERE p.key = d.key AND p.scheduled_at = d.scheduled_at
                     AND p.job_no = d.job_no AND p.sequence = d.sequence
                     AND p.attempt = d.attempt
                     FOR UPDATE SKIP LOCKED) AS p
            WHERE coalesce((SELECT r.status FROM attempt r
                             WHERE r.scheduled_at = d.scheduled_at AND r.job_no = d.job_no
                               AND r.sequence = d.sequence AND r.attempt = d.attempt),
                           {attempt.completed}) NOT IN ({attempts.unfinished})));
