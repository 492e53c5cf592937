-- Two processes that claim one identity join one after the other.
SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0));
