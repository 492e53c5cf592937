INSERT INTO event_listener (node, until) VALUES ($1, $2)
ON CONFLICT (node) DO UPDATE SET until = greatest(event_listener.until, excluded.until);
