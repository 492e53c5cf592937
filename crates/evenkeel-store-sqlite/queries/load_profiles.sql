-- Load profiles: how many jobs of a tenant run in which time slots.
--
-- The cost of a job is the average duration of its runs, at most 30 days (`takes_us`). The cost is
-- recounted if the stored cost is below 4/5 or above 5/4 of this average (`cost_differs`).

-- :fragment load_of_job
min(average_us, 2592000000000) AS takes_us, active = 0 OR next_at IS NULL AS is_over

-- :fragment cost_differs
(cost_us * 5 < takes_us * 4 OR cost_us * 4 > takes_us * 5)

-- :name recount_load
UPDATE job_state SET cost_us = ?2 WHERE job_no = ?1

-- :name load_profiles
SELECT tenant_no, key, profile, jobs, cost_us FROM load_profile
WHERE (tenant_no, key) > (?1, ?2) ORDER BY tenant_no, key LIMIT ?3

-- :name load_profiles_add (tenant_no, key, jobs, cost_us, profile)
INSERT INTO load_profile (tenant_no, key, profile, jobs, cost_us)
VALUES (:tenant_no, :key, :profile, :jobs, :cost_us)
ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs, cost_us = cost_us + excluded.cost_us

-- :name load_profiles_change (tenant_no, key, jobs, cost_us)
UPDATE load_profile SET jobs = jobs + :jobs, cost_us = cost_us + :cost_us
WHERE tenant_no = :tenant_no AND key = :key

-- :name load_profiles_delete
DELETE FROM load_profile WHERE tenant_no = ?1 AND key = ?2 AND jobs <= 0

-- :name load_profiles_of
SELECT tenant_no, load_profile, cost_us FROM job_state WHERE job_no = ?1

-- :name load_profiles_set (job_no, load_profile, cost_us, cost_stated)
UPDATE job_state SET load_profile = :load_profile, cost_us = :cost_us, cost_stated = :cost_stated
WHERE job_no = :job_no

-- :name tenant_load_profiles
SELECT tenant_no, key, profile, jobs, cost_us FROM load_profile
WHERE tenant_no = ?1 AND key > ?2 ORDER BY key LIMIT ?3

-- :name recount_load_find
-- The next jobs, and whether each must be recounted, because its cost differs or it has a load
-- profile but no next run time.
SELECT job_no, load_profile <> 0 AND (is_over OR (cost_stated = 0 AND takes_us IS NOT NULL
       AND {cost_differs}))
FROM (SELECT job_no, load_profile, cost_stated, cost_us, {load_of_job}
      FROM job_state WHERE job_no > ?1 ORDER BY job_no LIMIT ?2)
ORDER BY job_no

-- :name recount_load_of
-- Checks the job again. The new cost is NULL if the job has no next run time.
SELECT tenant_no, load_profile, cost_us, CASE WHEN NOT is_over THEN takes_us END AS takes_us
FROM (SELECT tenant_no, load_profile, cost_us, cost_stated, {load_of_job}
      FROM job_state WHERE job_no = ?1)
WHERE load_profile <> 0 AND (is_over OR (cost_stated = 0
  AND {cost_differs}))
