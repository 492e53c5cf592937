-- Tenants, settings, and a census of the store for tests and benchmarks.

-- :name census
SELECT (SELECT count(*) FROM job WHERE state <> {job.deleted}) AS jobs,
       (SELECT count(*) FROM attempt) AS attempts,
       (SELECT count(*) FROM attempt WHERE status = {attempt.running}) AS running,
       (SELECT count(*) FROM ready) AS ready,
       (SELECT count(*) FROM delayed_attempt) AS delayed,
       (SELECT coalesce(sum(skipped_count), 0) FROM attempt) AS skipped_times,
       (SELECT coalesce(sum(live), 0) FROM job_state) AS live,
       (SELECT count(*) FROM job_condition) AS conditions

-- :name setting_find
SELECT value FROM setting WHERE key = ?1

-- :name setting_create
INSERT INTO setting (key, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING

-- :name tenant_find
SELECT tenant_no FROM tenant WHERE name = ?1

-- :name tenant_create
INSERT INTO tenant (name) VALUES (?1) ON CONFLICT DO NOTHING
