-- The newest runs of all tenants from where the oldest open one may be, and those that run for
-- long. If the first are too many to look at, so is the whole.
SELECT DISTINCT r.job_no
  FROM (SELECT * FROM (SELECT job_no, tenant_no, status FROM run
                        WHERE scheduled_at >= (SELECT min(oldest_open) FROM node WHERE state <> 3)
                        ORDER BY scheduled_at DESC LIMIT 10001) AS newest
         UNION ALL
        SELECT r.job_no, r.tenant_no, r.status
          FROM long_run l
         CROSS JOIN LATERAL (SELECT job_no, tenant_no, status FROM run r
                              WHERE r.scheduled_at = l.scheduled_at AND r.job_no = l.job_no
                                AND r.sequence = l.sequence AND r.attempt = l.attempt LIMIT 1) AS r) AS r
 WHERE r.tenant_no = $1::int4 AND r.status = 1
