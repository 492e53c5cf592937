-- Clock, tenants, settings and migrations of the store.

-- :fragment clock
coalesce(:now::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)

-- :fragment on_conflict_judge_again
ON CONFLICT (job_no) DO UPDATE SET judge_at = 0, touched = excluded.touched

-- :fragment on_conflict_reload_again
-- The row is written even if it exists, because a scheduler that is reading the row now may have
-- read the job before this change.
ON CONFLICT (shard, job_no) DO UPDATE SET job_no = excluded.job_no

-- :name announce (channel, payload)
SELECT pg_notify(:channel, :payload);

-- :name census
SELECT (SELECT count(*) FROM job WHERE state <> {job.deleted}) AS jobs,
       (SELECT count(*) FROM attempt) AS attempts,
       (SELECT count(*) FROM attempt WHERE status = {attempt.running}) AS running,
       (SELECT count(*) FROM ready) AS ready,
       (SELECT count(*) FROM delayed_attempt) AS delayed,
       (SELECT coalesce(sum(skipped_count), 0)::int8 FROM attempt
         WHERE status = {attempt.skipped}) AS skipped_times,
       (SELECT coalesce(sum(live), 0)::int8 FROM job_state) AS live,
       (SELECT count(*) FROM job_condition) AS at_risk;

-- :name connect_durability
SELECT current_setting('fsync') = 'on' AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('full_page_writes') = 'on' AS full_page_writes;

-- :name connect_origin
SELECT gen_random_uuid()::text;

-- :name migrate_create_table
CREATE TABLE IF NOT EXISTS schema_version (
    version     int4 PRIMARY KEY,
    applied_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- :name migrate_is_unreleased
-- Versions before the first release recorded their migrations in another table.
SELECT to_regclass('schema_migration') IS NOT NULL;

-- :name migrate_lock (class, schema)
-- Only one node at a time applies migrations; the other nodes wait, at most for lock_timeout.
SELECT pg_advisory_xact_lock(:class, hashtext(:schema::text));

-- :name migrate_newest
SELECT coalesce(max(version), 0)::int4 FROM schema_version;

-- :name migrate_record
INSERT INTO schema_version (version) VALUES ($1);

-- :name now (now)
SELECT {clock};

-- :name setting_find
SELECT value FROM setting WHERE key = $1;

-- :name setting_create (key, value)
INSERT INTO setting (key, value) VALUES (:key, :value) ON CONFLICT (key) DO NOTHING;

-- :name tenant_find
SELECT tenant_no FROM tenant WHERE name = $1;

-- :name tenant_create
INSERT INTO tenant (name) VALUES ($1) ON CONFLICT (name) DO NOTHING;
