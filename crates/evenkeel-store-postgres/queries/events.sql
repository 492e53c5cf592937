-- Events for listeners.

-- :name events_after (tenant, after, limit)
-- Others' events are looked at, and only their places told: up to here all was seen. The first column
-- says whether anything at or before the place asked for is still there.
WITH looked AS (SELECT * FROM event WHERE no > :after ORDER BY no LIMIT :limit)
SELECT EXISTS (SELECT FROM event WHERE no <= :after),
       no, tenant_no IS NULL, kind, job_id, scheduled_at, job_no, sequence, attempt, at, data,
       job_name
FROM looked
WHERE tenant_no = :tenant OR tenant_no IS NULL
UNION ALL
SELECT EXISTS (SELECT FROM event WHERE no <= :after),
       max(no), false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM looked
HAVING max(no) IS NOT NULL
ORDER BY no, kind NULLS LAST;

-- :name listen (node, until)
INSERT INTO event_listener (node, until) VALUES (:node, :until)
ON CONFLICT (node) DO UPDATE SET until = greatest(event_listener.until, excluded.until);

-- :name listen_delete
-- Those of processes that ended long ago.
DELETE FROM event_listener WHERE until < $1;

-- :name listened_until
SELECT max(until) FROM event_listener;

-- :name newest_event
SELECT coalesce(max(no), 0) FROM event;

-- :name publish (
--   kind, tenant, job_id, by_no, scheduled_at, attempt_job_no, sequence, attempt, at, data
-- )
-- A row without a kind says that some before it were lost.
WITH newest AS (
    SELECT greatest(coalesce(max(no), 0), (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS no
    FROM event
)
INSERT INTO event (no, kind, tenant_no, job_id, scheduled_at, job_no, sequence, attempt, at, data,
                   job_name)
SELECT newest.no + new.place, new.kind, new.tenant_no, coalesce(new.job_id, numbered.id),
       new.scheduled_at, new.run_job_no, new.sequence, new.attempt, new.at, new.data,
       coalesce(numbered.name, told.name)
FROM newest
CROSS JOIN unnest(
    :kind::int2[], :tenant::int4[], :job_id::uuid[], :by_no::int8[], :scheduled_at::int8[], :attempt_job_no::int8[], :sequence::int4[], :attempt::int2[],
    :at::int8[], :data::text[]
) WITH ORDINALITY AS new (
    kind, tenant_no, job_id, by_no, scheduled_at, run_job_no, sequence, attempt, at, data, place
)
LEFT JOIN job AS numbered ON numbered.job_no = new.by_no
LEFT JOIN job AS told ON told.id = new.job_id;

-- :name publish_lock
-- One after the other, so that nobody sees a number before a smaller one.
SELECT pg_advisory_xact_lock(hashtextextended('evenkeel events ' || current_schema(), 0));

-- :name publish_trim
DELETE FROM event WHERE no <= (SELECT no FROM event ORDER BY no DESC OFFSET $1 LIMIT 1);
