-- ?3 jobs of the slot are looked at, whoever's they are: the limit comes before the tenant. One more
-- only tells whether these were all.
WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
SELECT count(*) FILTER (WHERE nth <= ?3 AND tenant_no = ?1 AND active = 1) AS jobs,
       count(*) <= ?3 AS counted_all
FROM (
    SELECT tenant_no, active, row_number() OVER () AS nth
    FROM (
        SELECT s.tenant_no, s.active
        FROM shard CROSS JOIN job_state s ON s.shard = shard.no AND s.slot = ?2
        LIMIT ?3 + 1))
