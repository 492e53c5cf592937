-- Two that begin at once would not see each other. Not the tenant's row: an order waits for that with
-- jobs locked that a batch of moves may want.
SELECT coalesce($2::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
  FROM (SELECT pg_advisory_xact_lock(
            hashtextextended('evenkeel rebalance ' || current_schema() || ' ' || $1::int4, 0))
        OFFSET 0) AS locked;
