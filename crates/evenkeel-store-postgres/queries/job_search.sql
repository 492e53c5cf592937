-- The search index of jobs.

-- :name index_jobs_lock
-- Only one transaction indexes jobs at a time, so that an older text of a job never overwrites a
-- newer one.
SELECT pg_advisory_xact_lock(hashtextextended('evenkeel job search ' || current_schema(), 0));

-- :name index_jobs_add (tenant, jobs)
INSERT INTO unindexed_job (tenant_no, jobs) VALUES (:tenant, :jobs);

-- :name index_jobs_add_target (tenant, target_no)
INSERT INTO unindexed_job (tenant_no, target_no) VALUES (:tenant, :target_no);

-- :name index_jobs_listed (limit)
-- The oldest entries that list jobs, until they have `limit` jobs.
SELECT entry_no, jobs
  FROM (SELECT entry_no, jobs, sum(count) OVER (ORDER BY entry_no) - count AS before
          FROM (SELECT entry_no, jobs, cardinality(jobs) AS count
                  FROM unindexed_job WHERE jobs IS NOT NULL
                 ORDER BY entry_no LIMIT :limit::int8) AS e) AS e
 WHERE before < :limit::int8
 ORDER BY entry_no;

-- :name index_jobs_walked
SELECT entry_no, tenant_no, target_no, after_no FROM unindexed_job
 WHERE jobs IS NULL ORDER BY entry_no LIMIT 1;

-- :name index_jobs_of_store (after_no, limit)
SELECT job_no FROM job WHERE job_no > :after_no ORDER BY job_no LIMIT :limit;

-- :name index_jobs_of_target (tenant, target_no, after_no, limit)
SELECT job_no FROM job
 WHERE tenant_no = :tenant AND target_no = :target_no AND job_no > :after_no
 ORDER BY job_no LIMIT :limit;

-- :name index_jobs_read (jobs)
SELECT j.job_no, j.tenant_no, j.about, t.name
  FROM job j LEFT JOIN target t ON t.tenant_no = j.tenant_no AND t.number = j.target_no
 WHERE j.job_no = ANY (:jobs::int8[]) AND j.state <> {job.deleted};

-- :name index_jobs_write (job_no, grams)
INSERT INTO job_grams (job_no, grams)
SELECT d.job_no, d.grams::int4[] FROM unnest(:job_no::int8[], :grams::text[]) AS d(job_no, grams)
    ON CONFLICT (job_no) DO UPDATE SET grams = excluded.grams
 WHERE job_grams.grams IS DISTINCT FROM excluded.grams;

-- :name index_jobs_delete (jobs)
DELETE FROM job_grams WHERE job_no = ANY (:jobs::int8[]);

-- :name index_jobs_done (entries)
DELETE FROM unindexed_job WHERE entry_no = ANY (:entries::int8[]);

-- :name index_jobs_advance (entry_no, after_no)
UPDATE unindexed_job SET after_no = :after_no WHERE entry_no = :entry_no;
