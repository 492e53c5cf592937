-- What waits, what is due by now (?21), and what has no time and never ran. The due ones are among those
-- of this slot and the slots before it: a slot of a large store holds many that are not due yet, so more
-- of them are looked at than of the others.
SELECT job_no FROM (SELECT job_no, tenant_no FROM ready LIMIT 10001) WHERE tenant_no = ?1
UNION
SELECT job_no FROM (SELECT job_no, tenant_no FROM wake LIMIT 10001) WHERE tenant_no = ?1
UNION
SELECT job_no FROM (
    SELECT job_no FROM job_state WHERE tenant_no = ?1 AND slot IS NULL AND active = 1 LIMIT 10001)
UNION
SELECT job_no FROM (
    SELECT job_no FROM (
        WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
        SELECT s.job_no, s.tenant_no, s.live, s.next_at
        FROM shard CROSS JOIN job_state s
          ON s.shard = shard.no AND s.slot <= ?21 / 900000000
        LIMIT 100001)
    WHERE tenant_no = ?1 AND live = 0 AND next_at <= ?21 LIMIT 10001)
