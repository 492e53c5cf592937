-- Last in its transaction, and in the order in which everybody does it. Costs come as texts, because
-- sums may be larger than any column of numbers that can be sent.
INSERT INTO rhythm AS r (tenant_no, key, rhythm, jobs, cost_us)
SELECT tenant_no, key, rhythm, jobs, cost_us::numeric
  FROM unnest($1::int4[], $2::int8[], $3::text[], $4::int8[], $5::text[])
       AS d(tenant_no, key, rhythm, jobs, cost_us)
 ORDER BY tenant_no, key
    ON CONFLICT (tenant_no, key) DO UPDATE
   SET jobs = r.jobs + excluded.jobs, cost_us = r.cost_us + excluded.cost_us;
