-- Activity per tenant and time slot.

-- :name add_activity (
--   tenant, slot, fired, completed, failed, timed_out, cancelled, busy_us, late_max_us, skipped,
--   lateness
-- )
-- Rows are written in key order, so that two nodes cannot deadlock. The arrays are added element by
-- element. Missing elements of the shorter array count as 0.
INSERT INTO activity AS a (tenant_no, slot, fired, completed, failed, timed_out, cancelled, busy_us,
                           late_max_us, skipped, lateness)
SELECT tenant_no, slot, fired, completed, failed, timed_out, cancelled, busy_us, late_max_us,
       skipped::int8[], lateness::int8[]
  FROM unnest(:tenant::int4[], :slot::int4[], :fired::int8[], :completed::int8[], :failed::int8[],
              :timed_out::int8[], :cancelled::int8[], :busy_us::int8[], :late_max_us::int8[],
              :skipped::text[], :lateness::text[])
       AS d(tenant_no, slot, fired, completed, failed, timed_out, cancelled, busy_us, late_max_us,
            skipped, lateness)
 ORDER BY tenant_no, slot
    ON CONFLICT (tenant_no, slot) DO UPDATE
   SET fired = a.fired + excluded.fired, completed = a.completed + excluded.completed,
       failed = a.failed + excluded.failed, timed_out = a.timed_out + excluded.timed_out,
       cancelled = a.cancelled + excluded.cancelled, busy_us = a.busy_us + excluded.busy_us,
       late_max_us = greatest(a.late_max_us, excluded.late_max_us),
       skipped = ARRAY(SELECT coalesce(old, 0) + coalesce(new, 0)
                         FROM unnest(a.skipped, excluded.skipped) WITH ORDINALITY AS s(old, new, place)
                        ORDER BY place),
       lateness = ARRAY(SELECT coalesce(old, 0) + coalesce(new, 0)
                          FROM unnest(a.lateness, excluded.lateness) WITH ORDINALITY
                               AS l(old, new, place)
                         ORDER BY place);

-- :name list_activity (tenant, from, until, limit)
SELECT slot, fired, completed, failed, timed_out, cancelled, busy_us, late_max_us, skipped, lateness
  FROM activity
 WHERE tenant_no = :tenant AND slot >= :from AND slot < :until
 ORDER BY slot LIMIT :limit;

-- :name prune_activity (before, limit)
DELETE FROM activity
 WHERE (tenant_no, slot) IN (
       SELECT tenant_no, slot FROM activity WHERE slot < :before ORDER BY slot LIMIT :limit
          FOR UPDATE SKIP LOCKED);
