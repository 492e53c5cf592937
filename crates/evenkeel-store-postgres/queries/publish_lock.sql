-- One after the other, so that nobody sees a number before a smaller one.
SELECT pg_advisory_xact_lock(hashtextextended('evenkeel events ' || current_schema(), 0));
