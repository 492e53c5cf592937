-- Waits for its turn at most as long as lock_timeout says.
SELECT pg_advisory_xact_lock($1, hashtext($2::text));
