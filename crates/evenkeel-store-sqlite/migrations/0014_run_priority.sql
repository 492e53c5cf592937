-- The priority that a run was given, if it was: so that it keeps it if its worker is lost.
ALTER TABLE run ADD COLUMN priority INTEGER;
