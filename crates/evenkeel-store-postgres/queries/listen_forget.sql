-- Those of processes that ended long ago.
DELETE FROM event_listener WHERE until < $1;
