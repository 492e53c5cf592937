-- The store itself: clock, tenants, settings, migrations.

-- :name census
SELECT (SELECT count(*) FROM job WHERE state <> 3),
       (SELECT count(*) FROM attempt),
       (SELECT count(*) FROM attempt WHERE status = 1),
       (SELECT count(*) FROM ready),
       (SELECT count(*) FROM delayed_attempt),
       (SELECT coalesce(sum(skipped_count), 0) FROM attempt),
       (SELECT coalesce(sum(live), 0) FROM job_state),
       (SELECT count(*) FROM job_condition)
