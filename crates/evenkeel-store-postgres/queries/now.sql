SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8);
