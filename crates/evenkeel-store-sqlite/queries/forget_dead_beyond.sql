-- Of a tenant, those that are not among its newest.
DELETE FROM dead_letter
WHERE rowid IN (SELECT rowid FROM dead_letter WHERE tenant_no = ?1
                ORDER BY died_at DESC, scheduled_at DESC, job_no DESC, sequence DESC
                LIMIT ?3 OFFSET ?2)
