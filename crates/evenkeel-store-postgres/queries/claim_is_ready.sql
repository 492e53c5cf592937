-- Is there anything at all to claim? An empty queue is asked often.
SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8), EXISTS (SELECT FROM ready WHERE pool = ANY ($2::text[]));
