-- The search index of jobs.

-- :name index_jobs_add (tenant_no, jobs)
INSERT INTO unindexed_job (tenant_no, jobs) VALUES (:tenant_no, :jobs)

-- :name index_jobs_add_target (tenant_no, target_no)
INSERT INTO unindexed_job (tenant_no, target_no) VALUES (:tenant_no, :target_no)

-- :name index_jobs_listed (limit)
-- The oldest entries that list jobs, until they have `limit` jobs.
SELECT entry_no, jobs FROM (
    SELECT entry_no, jobs, sum(count) OVER (ORDER BY entry_no) - count AS before
    FROM (SELECT entry_no, jobs, json_array_length(jobs) AS count
          FROM unindexed_job WHERE jobs IS NOT NULL ORDER BY entry_no LIMIT :limit))
WHERE before < :limit
ORDER BY entry_no

-- :name index_jobs_walked
SELECT entry_no, tenant_no, target_no, after_no FROM unindexed_job
WHERE jobs IS NULL ORDER BY entry_no LIMIT 1

-- :name index_jobs_of_store (after_no, limit)
SELECT job_no FROM job WHERE job_no > :after_no ORDER BY job_no LIMIT :limit

-- :name index_jobs_of_target (tenant_no, target_no, after_no, limit)
SELECT job_no FROM job
WHERE tenant_no = :tenant_no AND target_no IS NOT NULL AND target_no = :target_no AND job_no > :after_no
ORDER BY job_no LIMIT :limit

-- :name index_jobs_read (job_no)
SELECT j.tenant_no, j.about,
       (SELECT t.name FROM target t WHERE t.tenant_no = j.tenant_no AND t.number = j.target_no) AS target_name
FROM job j WHERE j.job_no = :job_no AND j.state <> {job.deleted}

-- :name index_jobs_write (job_no, grams)
REPLACE INTO job_grams (rowid, grams) VALUES (:job_no, :grams)

-- :name index_jobs_delete (job_no)
DELETE FROM job_grams WHERE rowid = :job_no

-- :name index_jobs_done (entry_no)
DELETE FROM unindexed_job WHERE entry_no = :entry_no

-- :name index_jobs_advance (entry_no, after_no)
UPDATE unindexed_job SET after_no = :after_no WHERE entry_no = :entry_no
