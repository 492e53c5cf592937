-- What people may call a job instead of its id: the jobs of a tenant are counted from 1.
ALTER TABLE job ADD COLUMN number int8;
UPDATE job j SET number = counted.number
  FROM (SELECT job_no, row_number() OVER (PARTITION BY tenant_no ORDER BY job_no) AS number
          FROM job) AS counted
 WHERE j.job_no = counted.job_no;
ALTER TABLE job ALTER COLUMN number SET NOT NULL;
CREATE UNIQUE INDEX job_number ON job (tenant_no, number);

-- The next numbers of a tenant. Not in its own row, which those who change or judge jobs lock last:
-- whoever registers takes numbers first, and then may have to wait for a name that one of those holds.
CREATE TABLE numbering (
    tenant_no   int4 PRIMARY KEY,
    next_job    int8 NOT NULL DEFAULT 1,
    next_target int8 NOT NULL DEFAULT 1,
    targets     int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
INSERT INTO numbering (tenant_no, next_job) SELECT tenant_no, max(number) + 1 FROM job GROUP BY tenant_no;

-- What jobs are about, known by a number within the tenant. When it was last run well is told by the
-- jobs that name it: ends of runs write nothing here. Jobs that name it no more leave theirs behind.
CREATE TABLE target (
    tenant_no   int4 NOT NULL,
    number      int8 NOT NULL,
    source_id   text,
    name        text,
    url         text,
    generation  int4 NOT NULL DEFAULT 1,
    created_at  int8 NOT NULL,
    updated_at  int8 NOT NULL,
    last_success_at int8,
    PRIMARY KEY (tenant_no, number)
);
CREATE UNIQUE INDEX target_source ON target (tenant_no, source_id) WHERE source_id IS NOT NULL;
ALTER TABLE job ADD COLUMN target_no int8;
-- Since when, if it did not from the start: what ended before belongs to another.
ALTER TABLE job ADD COLUMN target_since int8;
CREATE INDEX job_target ON job (tenant_no, target_no, job_no) WHERE target_no IS NOT NULL;
