-- Activity per tenant and time slot.

-- :name add_activity (
--   tenant_no, slot, fired, completed, failed, timed_out, cancelled, busy_us, late_max_us, skipped,
--   lateness)
-- The arrays are added element by element. Missing elements of the shorter array count as 0.
INSERT INTO activity (tenant_no, slot, fired, completed, failed, timed_out, cancelled, busy_us,
                      late_max_us, skipped, lateness)
VALUES (:tenant_no, :slot, :fired, :completed, :failed, :timed_out, :cancelled, :busy_us,
        :late_max_us, :skipped, :lateness)
ON CONFLICT (tenant_no, slot) DO UPDATE
SET fired = fired + excluded.fired, completed = completed + excluded.completed,
    failed = failed + excluded.failed, timed_out = timed_out + excluded.timed_out,
    cancelled = cancelled + excluded.cancelled, busy_us = busy_us + excluded.busy_us,
    late_max_us = max(late_max_us, excluded.late_max_us),
    skipped = (
        SELECT json_group_array(n) FROM (
            SELECT sum(value) AS n FROM (
                SELECT key, value FROM json_each(activity.skipped)
                UNION ALL SELECT key, value FROM json_each(excluded.skipped))
            GROUP BY key ORDER BY key)),
    lateness = (
        SELECT json_group_array(n) FROM (
            SELECT sum(value) AS n FROM (
                SELECT key, value FROM json_each(activity.lateness)
                UNION ALL SELECT key, value FROM json_each(excluded.lateness))
            GROUP BY key ORDER BY key))

-- :name list_activity (tenant_no, from, until, limit)
SELECT slot, fired, completed, failed, timed_out, cancelled, busy_us, late_max_us, skipped, lateness
FROM activity
WHERE tenant_no = :tenant_no AND slot >= :from AND slot < :until ORDER BY slot LIMIT :limit

-- :name prune_activity (before, limit)
DELETE FROM activity WHERE (tenant_no, slot) IN (
    SELECT tenant_no, slot FROM activity WHERE slot < :before ORDER BY slot LIMIT :limit)
