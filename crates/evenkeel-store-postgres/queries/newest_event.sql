SELECT coalesce(max(no), 0) FROM event;
