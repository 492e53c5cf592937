-- In the order of tenants, so that two nodes wait for each other only one way.
INSERT INTO tally AS t (tenant_no, completed, failed, timed_out, cancelled, retries, stolen, good_us)
SELECT * FROM unnest($1::int4[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[],
                     $8::int8[]) AS d(tenant_no, a, b, c, d, e, f, g)
 ORDER BY tenant_no
    ON CONFLICT (tenant_no) DO UPDATE
   SET completed = t.completed + excluded.completed, failed = t.failed + excluded.failed,
       timed_out = t.timed_out + excluded.timed_out, cancelled = t.cancelled + excluded.cancelled,
       retries = t.retries + excluded.retries, stolen = t.stolen + excluded.stolen,
       good_us = t.good_us + excluded.good_us;
