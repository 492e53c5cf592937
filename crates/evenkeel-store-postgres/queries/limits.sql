-- Concurrency limits: permits and limit queues.

-- :name claim_to_limit_queue (scheduled_at, job_no, sequence, attempt, queue, max)
-- Into the waiting rooms. What this transaction has not locked itself, somebody else may be taking.
WITH free AS MATERIALIZED (
    SELECT q.ctid, d.room, d.most
      FROM unnest(:scheduled_at::int8[], :job_no::int8[], :sequence::int4[], :attempt::int2[], :queue::text[], :max::int4[])
           AS d(scheduled_at, job_no, sequence, attempt, room, most)
     CROSS JOIN LATERAL (
           SELECT q.ctid FROM ready q
            WHERE q.scheduled_at = d.scheduled_at AND q.job_no = d.job_no
              AND q.sequence = d.sequence AND q.attempt = d.attempt AND q.home_pool IS NULL
              FOR UPDATE SKIP LOCKED) AS q
)
UPDATE ready q SET home_pool = q.pool, pool = f.room, limited_by_max = f.most
  FROM free f WHERE q.ctid = f.ctid;

-- :name claim_permit_count
SELECT k.nth, (SELECT count(*) FROM permit p WHERE p.key = k.key)
  FROM unnest($1::bytea[]) WITH ORDINALITY AS k(key, nth);

-- :name claim_permit_lock
-- Who gives out places of a limit has its lock until the end of the transaction. Nobody waits for it,
-- since they come in any order.
SELECT k.nth, pg_try_advisory_xact_lock(hashtextextended(
                  'evenkeel permit ' || current_schema() || ' ' || encode(k.key, 'hex'), 0))
  FROM unnest($1::bytea[]) WITH ORDINALITY AS k(key, nth);

-- :name claim_permit_sweep
-- Places whose attempts do not run any more, or not yet again. The caller has the locks of the limits.
-- The status is not looked up by a join, which a plan made while there were none might do the wrong
-- way round.
DELETE FROM permit
 WHERE ctid = ANY (ARRAY(
           SELECT p.ctid FROM unnest($1::bytea[]) AS k(key)
            CROSS JOIN LATERAL (
                  SELECT p.ctid FROM permit p
                   WHERE p.key = k.key
                     AND coalesce((SELECT r.status FROM attempt r
                                    WHERE r.scheduled_at = p.scheduled_at AND r.job_no = p.job_no
                                      AND r.sequence = p.sequence AND r.attempt = p.attempt), 0)
                         <> 1
                     FOR UPDATE SKIP LOCKED) AS p));

-- :name claim_permit_take (key, scheduled_at, job_no, sequence, attempt)
-- One that was handed back may have its place still.
INSERT INTO permit (key, scheduled_at, job_no, sequence, attempt)
SELECT * FROM unnest(:key::bytea[], :scheduled_at::int8[], :job_no::int8[], :sequence::int4[], :attempt::int2[])
    ON CONFLICT DO NOTHING;

-- :name prune_permits (after_key, after_at, after_job_no, after_sequence, after_attempt, limit)
-- One page of places, of which those go whose attempts have ended.
WITH page AS MATERIALIZED (
    SELECT ctid, key, scheduled_at, job_no, sequence, attempt
      FROM permit
     WHERE (key, scheduled_at, job_no, sequence, attempt)
           > (:after_key::bytea, :after_at::int8, :after_job_no::int8, :after_sequence::int4, :after_attempt::int2)
     ORDER BY key, scheduled_at, job_no, sequence, attempt LIMIT :limit
), gone AS (
    DELETE FROM permit
     WHERE ctid = ANY (ARRAY(
               SELECT p.ctid FROM page p
                WHERE coalesce((SELECT r.status FROM attempt r
                                 WHERE r.scheduled_at = p.scheduled_at AND r.job_no = p.job_no
                                   AND r.sequence = p.sequence AND r.attempt = p.attempt), 2)
                      NOT IN (0, 1)))
)
SELECT (SELECT count(*) FROM page), key, scheduled_at, job_no, sequence, attempt
  FROM page ORDER BY key DESC, scheduled_at DESC, job_no DESC, sequence DESC, attempt DESC LIMIT 1;

-- :name release_limited (scheduled_at, job_no, sequence, attempt, from_pool, to_pool, max)
-- Out of the waiting rooms, each into its own pool, or into another waiting room. Who has left
-- meanwhile, or is just being taken, is let be.
WITH free AS MATERIALIZED (
    SELECT q.ctid, d.room, d.most
      FROM unnest(:scheduled_at::int8[], :job_no::int8[], :sequence::int4[], :attempt::int2[], :from_pool::text[], :to_pool::text[], :max::int4[])
           AS d(scheduled_at, job_no, sequence, attempt, was_in, room, most)
     CROSS JOIN LATERAL (
           SELECT q.ctid FROM ready q
            WHERE q.scheduled_at = d.scheduled_at AND q.job_no = d.job_no
              AND q.sequence = d.sequence AND q.attempt = d.attempt
              AND q.home_pool IS NOT NULL AND q.pool = d.was_in
              FOR UPDATE SKIP LOCKED) AS q
), moved AS (
    UPDATE ready q
       SET pool = coalesce(f.room, q.home_pool),
           home_pool = CASE WHEN f.room IS NOT NULL THEN q.home_pool END, limited_by_max = f.most
      FROM free f WHERE q.ctid = f.ctid
    RETURNING f.room
)
SELECT count(*) FILTER (WHERE room IS NULL) FROM moved;

-- :name release_find (pool, count, now)
-- The first of each lane of each waiting room, by priority and by what they have waited: those that
-- rank highest are among them.
WITH clock AS MATERIALIZED (
    SELECT coalesce(:now::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
)
SELECT c.ctid::text, c.lane, c.priority, c.rise, c.should_start_by, c.since, c.scheduled_at,
       c.job_no, c.sequence, c.attempt, c.own_priority, c.tenant_no, c.fence, c.crashes, c.prev_at,
       c.prev_sequence, c.limit_key, c.limit_max, d.nth, (SELECT now FROM clock)
  FROM unnest(:pool::text[], :count::int8[]) WITH ORDINALITY AS d(pool, places, nth)
 CROSS JOIN unnest('{{lanes.all}}'::int2[]) AS l(lane)
 CROSS JOIN LATERAL (SELECT ctid, * FROM ready
                      WHERE pool = d.pool AND lane = l.lane
                        AND (open_from IS NULL OR open_from <= (SELECT now FROM clock))
                        AND (open_until IS NULL OR open_until > (SELECT now FROM clock))
                      ORDER BY priority DESC, should_start_by, since, job_no
                      LIMIT d.places) AS c
 UNION ALL
SELECT c.ctid::text, c.lane, c.priority, c.rise, c.should_start_by, c.since, c.scheduled_at,
       c.job_no, c.sequence, c.attempt, c.own_priority, c.tenant_no, c.fence, c.crashes, c.prev_at,
       c.prev_sequence, c.limit_key, c.limit_max, d.nth, (SELECT now FROM clock)
  FROM unnest(:pool::text[], :count::int8[]) WITH ORDINALITY AS d(pool, places, nth)
 CROSS JOIN unnest('{{lanes.all}}'::int2[]) AS l(lane)
 CROSS JOIN LATERAL (SELECT ctid, * FROM ready
                      WHERE pool = d.pool AND lane = l.lane
                        AND (open_from IS NULL OR open_from <= (SELECT now FROM clock))
                        AND (open_until IS NULL OR open_until > (SELECT now FROM clock))
                      ORDER BY rise, should_start_by, since, job_no
                      LIMIT d.places) AS c;

-- :name release_queues (after_pool, limit)
-- The next waiting rooms, one step along their index for each; the lowest and the highest limit in
-- them, and how many have places, be it that some have ended.
WITH RECURSIVE rooms AS (
    (SELECT pool, 1 AS nth FROM ready WHERE home_pool IS NOT NULL AND pool > :after_pool
      ORDER BY pool LIMIT 1)
    UNION ALL
    SELECT next.pool, rooms.nth + 1
      FROM rooms
     CROSS JOIN LATERAL (SELECT pool FROM ready
                          WHERE home_pool IS NOT NULL AND pool > rooms.pool
                          ORDER BY pool LIMIT 1) AS next
     WHERE rooms.nth < :limit::int8
)
SELECT r.pool,
       (SELECT min(q.limited_by_max) FROM ready q WHERE q.home_pool IS NOT NULL AND q.pool = r.pool),
       (SELECT max(q.limited_by_max) FROM ready q WHERE q.home_pool IS NOT NULL AND q.pool = r.pool),
       (SELECT count(*) FROM permit p WHERE p.key = decode(substr(r.pool, 2), 'hex'))
  FROM rooms r ORDER BY r.nth;

-- :name release_running
-- How many of those who have places really run.
SELECT k.nth, (SELECT count(*) FROM permit p
                WHERE p.key = k.key
                  AND (SELECT e.status FROM attempt e
                        WHERE e.scheduled_at = p.scheduled_at AND e.job_no = p.job_no
                          AND e.sequence = p.sequence AND e.attempt = p.attempt) = 1)
  FROM unnest($1::bytea[]) WITH ORDINALITY AS k(key, nth);

-- :name release_delete_permits (key, scheduled_at, job_no, sequence, attempt)
-- An attempt that has ended never runs again, so nobody's lock is needed for its place.
DELETE FROM permit
 WHERE ctid = ANY (ARRAY(
           SELECT p.ctid
             FROM unnest(:key::bytea[], :scheduled_at::int8[], :job_no::int8[], :sequence::int4[], :attempt::int2[])
                  AS d(key, scheduled_at, job_no, sequence, attempt)
            CROSS JOIN LATERAL (
                  SELECT p.ctid FROM permit p
                   WHERE p.key = d.key AND p.scheduled_at = d.scheduled_at
                     AND p.job_no = d.job_no AND p.sequence = d.sequence
                     AND p.attempt = d.attempt
                     FOR UPDATE SKIP LOCKED) AS p
            WHERE coalesce((SELECT r.status FROM attempt r
                             WHERE r.scheduled_at = d.scheduled_at AND r.job_no = d.job_no
                               AND r.sequence = d.sequence AND r.attempt = d.attempt), 2)
                  NOT IN (0, 1)));
