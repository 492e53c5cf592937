-- The jobs of all tenants in this slot (?2 is now) and the slots before it, up to a bound: how many are
-- due, how many are not, and of due ones with blackouts what decides whether those hold them.
SELECT s.live = 0 AND s.next_at <= ?2 AS is_due, CASE WHEN s.held THEN s.definition END AS held,
       CASE WHEN s.held THEN s.next_at END AS next_at,
       CASE WHEN s.held THEN s.average_us END AS average_us, count(*) AS jobs
FROM (
    SELECT d.live, d.next_at, d.average_us, j.definition,
           d.live = 0 AND d.next_at <= ?2 AND instr(j.definition, '"blackout_periods"') > 0 AS held
    FROM (
        WITH RECURSIVE shard (no) AS (SELECT 0 UNION ALL SELECT no + 1 FROM shard WHERE no < 255)
        SELECT s.job_no, s.live, s.next_at, s.average_us
        FROM shard CROSS JOIN job_state s ON s.shard = shard.no AND s.slot <= ?2 / 900000000
        LIMIT ?1) d
    LEFT JOIN job j ON j.job_no = d.job_no AND d.live = 0 AND d.next_at <= ?2) s
GROUP BY 1, 2, 3, 4
