INSERT INTO tally_running (node_no, tenant_no, running) VALUES (?1, ?2, ?3)
ON CONFLICT (node_no, tenant_no) DO UPDATE SET running = running + excluded.running
