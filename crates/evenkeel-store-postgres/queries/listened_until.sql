SELECT max(until) FROM event_listener;
