-- What people may call a job instead of its id: the jobs of a tenant are counted from 1. There is one
-- writer, so the next number can stand in the tenant's row, which registering writes anyway.
ALTER TABLE job ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
UPDATE job SET number = counted.number
  FROM (SELECT job_no, row_number() OVER (PARTITION BY tenant_no ORDER BY job_no) AS number
          FROM job) AS counted
 WHERE job.job_no = counted.job_no;
CREATE UNIQUE INDEX job_number ON job (tenant_no, number);
ALTER TABLE tenant ADD COLUMN next_job INTEGER NOT NULL DEFAULT 1;
UPDATE tenant SET next_job = coalesce(
    (SELECT max(number) + 1 FROM job WHERE job.tenant_no = tenant.tenant_no), 1);

-- What jobs are about, known by a number within the tenant. When it was last run well is told by the
-- jobs that name it: ends of runs write nothing here. Jobs that name it no more leave theirs behind.
CREATE TABLE target (
    tenant_no   INTEGER NOT NULL,
    number      INTEGER NOT NULL,
    source_id   TEXT,
    name        TEXT,
    url         TEXT,
    generation  INTEGER NOT NULL DEFAULT 1,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    last_success_at INTEGER,
    PRIMARY KEY (tenant_no, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX target_source ON target (tenant_no, source_id) WHERE source_id IS NOT NULL;
ALTER TABLE tenant ADD COLUMN next_target INTEGER NOT NULL DEFAULT 1;
ALTER TABLE tenant ADD COLUMN targets INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN target_no INTEGER;
-- Since when, if it did not from the start: what ended before belongs to another.
ALTER TABLE job ADD COLUMN target_since INTEGER;
CREATE INDEX job_target ON job (tenant_no, target_no, job_no) WHERE target_no IS NOT NULL;
