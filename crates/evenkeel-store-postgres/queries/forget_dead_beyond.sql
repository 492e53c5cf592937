-- Of each tenant, those that are not among its newest.
DELETE FROM dead_letter
 WHERE ctid = ANY (ARRAY(
           SELECT d.ctid FROM tenant t
            CROSS JOIN LATERAL (
                  SELECT ctid FROM dead_letter d WHERE d.tenant_no = t.tenant_no
                   ORDER BY died_at DESC, scheduled_at DESC, job_no DESC, sequence DESC
                  OFFSET $1 LIMIT $2) AS d
            LIMIT $2));
