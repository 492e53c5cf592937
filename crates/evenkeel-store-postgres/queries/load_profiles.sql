-- Load profiles: how many jobs of a tenant run in which time slots.

-- :name recount_load (after, limit)
-- Most jobs are counted correctly, so this statement locks no rows. The cost of a run is capped at
-- 30 days. Jobs that are counted without a next run time should not exist; if they do, they are no
-- longer counted.
SELECT max(job_no) AS last, count(*) AS scanned,
       array_agg(job_no) FILTER (WHERE counted AND NOT is_over AND NOT cost_stated
                                   AND (cost_us * 5 < takes_us * 4 OR cost_us * 4 > takes_us * 5))
       AS to_change,
       array_agg(job_no) FILTER (WHERE counted AND is_over) AS to_end
  FROM (SELECT job_no, counted, slot IS NULL AS is_over, cost_stated,
               -- a cost that the user set may be too large to be multiplied
               CASE WHEN NOT cost_stated THEN cost_us END AS cost_us,
               CASE WHEN average_us IS NOT NULL
                    THEN least(average_us, 2592000000000) END AS takes_us
          FROM job_state WHERE job_no > :after ORDER BY job_no LIMIT :limit) AS s;

-- :name load_profiles (after_tenant, after_key, limit)
SELECT tenant_no, key, profile, jobs, least(cost_us, 9223372036854775807)::int8 AS cost_us
  FROM load_profile
 WHERE (tenant_no, key) > (:after_tenant, :after_key) AND jobs > 0
 ORDER BY tenant_no, key LIMIT :limit;

-- :name load_profiles_count (tenant, key, profile, jobs, cost_us)
-- This is the last statement of its transaction and writes in key order, so that no two
-- transactions deadlock. Costs are passed as texts, because a sum may exceed an int8.
INSERT INTO load_profile AS r (tenant_no, key, profile, jobs, cost_us)
SELECT tenant_no, key, profile, jobs, cost_us::numeric
  FROM unnest(:tenant::int4[], :key::int8[], :profile::text[], :jobs::int8[], :cost_us::text[])
       AS d(tenant_no, key, profile, jobs, cost_us)
 ORDER BY tenant_no, key
    ON CONFLICT (tenant_no, key) DO UPDATE
   SET jobs = r.jobs + excluded.jobs, cost_us = r.cost_us + excluded.cost_us;

-- :name load_profiles_count_ended
-- Of the jobs whose rows this transaction has locked, those without a next run time are no longer
-- counted.
WITH ended AS MATERIALIZED (
    SELECT job_no, tenant_no, load_profile, cost_us FROM job_state
     WHERE job_no = ANY ($1::int8[]) AND counted AND slot IS NULL
     ORDER BY job_no FOR NO KEY UPDATE
), unmarked AS (
    UPDATE job_state s SET counted = false FROM ended e WHERE s.job_no = e.job_no
)
INSERT INTO load_profile AS r (tenant_no, key, profile, jobs, cost_us)
SELECT tenant_no, load_profile, '', -count(*), -sum(cost_us)
  FROM ended GROUP BY tenant_no, load_profile ORDER BY tenant_no, load_profile
    ON CONFLICT (tenant_no, key) DO UPDATE
   SET jobs = r.jobs + excluded.jobs, cost_us = r.cost_us + excluded.cost_us;

-- :name tenant_load_profiles (tenant, after, limit)
SELECT tenant_no, key, profile, jobs, least(cost_us, 9223372036854775807)::int8 AS cost_us
  FROM load_profile
 WHERE tenant_no = :tenant AND (:after::int8 IS NULL OR key > :after) AND jobs > 0
 ORDER BY key LIMIT :limit;

-- :name recount_load_change
-- Reads the jobs to change again while it locks them; rows locked by other transactions are left to
-- the next pass. The statement joins from the batch to the rows.
WITH changing AS MATERIALIZED (
    SELECT s.*
      FROM unnest($1::int8[]) AS d(job_no)
     CROSS JOIN LATERAL (SELECT job_no, tenant_no, load_profile, cost_us,
                                least(average_us, 2592000000000) AS takes_us
                           FROM job_state
                          WHERE job_no = d.job_no AND counted AND NOT cost_stated
                            AND average_us IS NOT NULL
                            FOR NO KEY UPDATE SKIP LOCKED) AS s
), changed AS (
    UPDATE job_state s SET cost_us = c.takes_us FROM changing c WHERE s.job_no = c.job_no
)
SELECT array_agg(tenant_no) AS tenants, array_agg(load_profile) AS profiles,
       array_agg(takes_us - cost_us) AS increases
  FROM changing;

-- :name recount_load_end
-- Does the same as load_profiles_count_ended for jobs that are not locked yet; rows locked by other
-- transactions are left to the next pass.
WITH ended AS MATERIALIZED (
    SELECT job_no, tenant_no, load_profile, cost_us FROM job_state
     WHERE job_no = ANY ($1::int8[]) AND counted AND slot IS NULL
     ORDER BY job_no FOR NO KEY UPDATE SKIP LOCKED
), unmarked AS (
    UPDATE job_state s SET counted = false FROM ended e WHERE s.job_no = e.job_no
), uncounted AS (
    INSERT INTO load_profile AS r (tenant_no, key, profile, jobs, cost_us)
    SELECT tenant_no, load_profile, '', -count(*), -sum(cost_us)
      FROM ended GROUP BY tenant_no, load_profile ORDER BY tenant_no, load_profile
        ON CONFLICT (tenant_no, key) DO UPDATE
       SET jobs = r.jobs + excluded.jobs, cost_us = r.cost_us + excluded.cost_us
)
SELECT count(*) FROM ended;

-- :name recount_load_delete
-- Skips load profiles whose counts other transactions are changing.
DELETE FROM load_profile
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM load_profile WHERE jobs <= 0 LIMIT $1 FOR UPDATE SKIP LOCKED));
