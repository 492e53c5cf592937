-- The store itself: clock, tenants, settings, migrations.

-- :name announce (channel, payload)
SELECT pg_notify(:channel, :payload);

-- :name census
SELECT (SELECT count(*) FROM job WHERE state <> {job.deleted}),
       (SELECT count(*) FROM attempt),
       (SELECT count(*) FROM attempt WHERE status = {attempt.running}),
       (SELECT count(*) FROM ready),
       (SELECT count(*) FROM delayed_attempt),
       (SELECT coalesce(sum(skipped_count), 0)::int8 FROM attempt WHERE status = {attempt.skipped}),
       (SELECT coalesce(sum(live), 0)::int8 FROM job_state),
       (SELECT count(*) FROM job_condition);

-- :name connect_durability
SELECT current_setting('fsync') = 'on', current_setting('synchronous_commit'),
       current_setting('full_page_writes') = 'on';

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
-- One node at a time applies migrations. The others wait, at most for lock_timeout.
SELECT pg_advisory_xact_lock(:class, hashtext(:schema::text));

-- :name migrate_newest
SELECT coalesce(max(version), 0)::int4 FROM schema_version;

-- :name migrate_record
INSERT INTO schema_version (version) VALUES ($1);

-- :name now
SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8);

-- :name setting_find
SELECT value FROM setting WHERE key = $1;

-- :name setting_create (key, value)
INSERT INTO setting (key, value) VALUES (:key, :value) ON CONFLICT (key) DO NOTHING;

-- :name tenant_find
SELECT tenant_no FROM tenant WHERE name = $1;

-- :name tenant_create
INSERT INTO tenant (name) VALUES ($1) ON CONFLICT (name) DO NOTHING;
