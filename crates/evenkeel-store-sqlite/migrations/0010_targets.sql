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
