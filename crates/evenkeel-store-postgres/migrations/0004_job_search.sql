-- The search index of jobs: the numbers of the three-character parts of each job's text. They are
-- not in the row of the job, because an index on that row would make registering jobs slower.
CREATE TABLE job_grams (
    job_no      int8 PRIMARY KEY,
    grams       int4[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);
-- Every statement has the same plan whatever its parameters, so statistics of the grams would be
-- collected in vain.
ALTER TABLE job_grams ALTER COLUMN grams SET STATISTICS 0;
-- New entries go to a pending list that is merged when it is full. This writes the grams of many
-- jobs together. Every search reads the pending list, so its size (in kB) is small.
CREATE INDEX job_grams_grams ON job_grams USING gin (grams array_ops)
    WITH (fastupdate = on, gin_pending_list_limit = 512);

-- Jobs that are not in the search index yet, or whose text has changed. Registering a batch of jobs
-- adds one row.
CREATE TABLE unindexed_job (
    entry_no    int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_no   int4,
    -- numbers of jobs; NULL for all jobs of the target, or all jobs of the store
    jobs        int8[],
    target_no   int8,
    -- jobs up to this number are indexed already, if `jobs` is NULL
    after_no    int8 NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
INSERT INTO unindexed_job (after_no) SELECT 0 WHERE EXISTS (SELECT FROM job);
