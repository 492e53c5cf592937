-- Deleted jobs as well: one that is made anew with the number has nothing to do with them.
WITH named AS MATERIALIZED (
    SELECT job_no FROM job WHERE tenant_no = $1 AND target_no = $2 ORDER BY job_no FOR UPDATE
)
UPDATE job j SET target_no = NULL FROM named WHERE j.job_no = named.job_no;
