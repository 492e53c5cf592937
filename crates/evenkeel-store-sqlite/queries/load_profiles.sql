-- Load profiles: how many jobs of a tenant fall into which slots.

-- :name count_uncounted
-- Whatever changes a job counts it, too: what was read counts only if nothing has.
UPDATE job_state SET load_profile = ?3, cost_us = ?4, cost_stated = ?5
WHERE job_no = ?1 AND load_profile IS NULL AND generation = ?2

-- :name count_uncounted_find
SELECT s.job_no, s.tenant_no, s.generation, s.average_us, j.definition,
       CASE WHEN s.active = 1 THEN s.next_at END AS next_at
FROM job_state s INDEXED BY job_state_uncounted JOIN job j ON j.job_no = s.job_no
WHERE s.load_profile IS NULL ORDER BY s.job_no LIMIT ?1

-- :name recount_load
UPDATE job_state SET cost_us = ?2 WHERE job_no = ?1

-- :name load_profiles
SELECT tenant_no, key, profile, jobs, cost_us FROM load_profile
WHERE (tenant_no, key) > (?1, ?2) ORDER BY tenant_no, key LIMIT ?3

-- :name load_profiles_add
INSERT INTO load_profile (tenant_no, key, profile, jobs, cost_us) VALUES (?1, ?2, ?5, ?3, ?4)
ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs, cost_us = cost_us + excluded.cost_us

-- :name load_profiles_change
UPDATE load_profile SET jobs = jobs + ?3, cost_us = cost_us + ?4 WHERE tenant_no = ?1 AND key = ?2

-- :name load_profiles_delete
DELETE FROM load_profile WHERE tenant_no = ?1 AND key = ?2 AND jobs <= 0

-- :name load_profiles_of
SELECT tenant_no, load_profile, cost_us FROM job_state WHERE job_no = ?1

-- :name load_profiles_set
UPDATE job_state SET load_profile = ?2, cost_us = ?3, cost_stated = ?4 WHERE job_no = ?1

-- :name tenant_load_profiles
SELECT tenant_no, key, profile, jobs, cost_us FROM load_profile
WHERE tenant_no = ?1 AND key > ?2 ORDER BY key LIMIT ?3

-- :name recount_load_find
-- Which jobs count for less than four fifths or more than five quarters of what their runs take, 30 days
-- at most? And which count though they have no next time, which should not be?
SELECT job_no, coalesce(load_profile, 0) <> 0 AND (is_over OR (cost_stated = 0 AND takes_us IS NOT NULL
       AND (cost_us * 5 < takes_us * 4 OR cost_us * 4 > takes_us * 5)))
FROM (SELECT job_no, load_profile, cost_stated, cost_us, min(average_us, 2592000000000) AS takes_us,
             active = 0 OR next_at IS NULL AS is_over
      FROM job_state WHERE job_no > ?1 ORDER BY job_no LIMIT ?2)
ORDER BY job_no

-- :name recount_load_of
-- As it was looked at; what it takes is NULL if it has no next time.
SELECT tenant_no, load_profile, cost_us, CASE WHEN NOT is_over THEN takes_us END
FROM (SELECT tenant_no, load_profile, cost_us, cost_stated, min(average_us, 2592000000000) AS takes_us,
             active = 0 OR next_at IS NULL AS is_over
      FROM job_state WHERE job_no = ?1)
WHERE load_profile <> 0 AND (is_over OR (cost_stated = 0
  AND (cost_us * 5 < takes_us * 4 OR cost_us * 4 > takes_us * 5)))
