INSERT INTO tally_running (node_no, tenant_no, running)
SELECT $1, * FROM unnest($2::int4[], $3::int4[])
    ON CONFLICT (node_no, tenant_no) DO UPDATE SET running = excluded.running;
