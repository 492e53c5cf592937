-- The store itself: clock, tenants, settings, migrations.

-- :name census
SELECT (SELECT count(*) FROM job WHERE standing <> 3),
       (SELECT count(*) FROM run),
       (SELECT count(*) FROM run WHERE status = 1),
       (SELECT count(*) FROM ready),
       (SELECT count(*) FROM wake),
       (SELECT coalesce(sum(skipped_count), 0) FROM run),
       (SELECT coalesce(sum(live), 0) FROM job_state),
       (SELECT count(*) FROM watch)
