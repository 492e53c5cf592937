-- Is there anything at all to claim? An empty queue is asked often, and so is one in which nothing
-- may be claimed by this node for now.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
)
SELECT (SELECT now FROM clock),
       EXISTS (SELECT FROM ready
                WHERE pool = ANY ($2::text[])
                  AND (open_from IS NULL OR open_from <= (SELECT now FROM clock))
                  AND (open_until IS NULL OR open_until > (SELECT now FROM clock))
                  AND (forbidden_nodes IS NULL OR NOT forbidden_nodes ? $3));
