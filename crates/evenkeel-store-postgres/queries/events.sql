-- Events for listeners.

-- :name events_after (tenant, after, limit)
-- Events of other tenants are scanned but not returned, except for the last number, so that the
-- reader can continue after it. `has_earlier` is true if the event at or before `after` still
-- exists.
WITH scanned AS (SELECT * FROM event WHERE no > :after ORDER BY no LIMIT :limit)
SELECT EXISTS (SELECT FROM event WHERE no <= :after) AS has_earlier,
       no, tenant_no IS NULL AS is_gap, kind, job_id, scheduled_at, job_no, sequence, attempt, at,
       data,
       job_name
FROM scanned
WHERE tenant_no = :tenant OR tenant_no IS NULL
UNION ALL
SELECT EXISTS (SELECT FROM event WHERE no <= :after),
       max(no), false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM scanned
HAVING max(no) IS NOT NULL
ORDER BY no, kind NULLS LAST;

-- :name listen (node, until)
INSERT INTO event_listener (node, until) VALUES (:node, :until)
ON CONFLICT (node) DO UPDATE SET until = greatest(event_listener.until, excluded.until);

-- :name listen_delete
-- Deletes listeners of processes that ended long ago.
DELETE FROM event_listener WHERE until < $1;

-- :name listened_until
SELECT max(until) FROM event_listener;

-- :name newest_event
SELECT coalesce(max(no), 0) FROM event;

-- :name publish (
--   kind, tenant, job_id, by_no, scheduled_at, attempt_job_no, sequence, attempt, at, data
-- )
-- A row without a kind reports that earlier events were lost.
WITH newest AS (
    SELECT greatest(coalesce(max(no), 0), (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS no
    FROM event
)
INSERT INTO event (no, kind, tenant_no, job_id, scheduled_at, job_no, sequence, attempt, at, data,
                   job_name)
SELECT newest.no + new.position, new.kind, new.tenant_no, coalesce(new.job_id, by_number.id),
       new.scheduled_at, new.run_job_no, new.sequence, new.attempt, new.at, new.data,
       coalesce(by_number.name, by_id.name)
FROM newest
CROSS JOIN unnest(
    :kind::int2[], :tenant::int4[], :job_id::uuid[], :by_no::int8[], :scheduled_at::int8[],
    :attempt_job_no::int8[], :sequence::int4[], :attempt::int2[],
    :at::int8[], :data::text[]
) WITH ORDINALITY AS new (
    kind, tenant_no, job_id, by_no, scheduled_at, run_job_no, sequence, attempt, at, data, position
)
LEFT JOIN job AS by_number ON by_number.job_no = new.by_no
LEFT JOIN job AS by_id ON by_id.id = new.job_id;

-- :name publish_lock
-- Only one transaction publishes at a time, so that numbers become visible in order.
SELECT pg_advisory_xact_lock(hashtextextended('evenkeel events ' || current_schema(), 0));

-- :name publish_trim
DELETE FROM event WHERE no <= (SELECT no FROM event ORDER BY no DESC OFFSET $1 LIMIT 1);
