-- They are locked, so each is where it was found.
DELETE FROM ready WHERE ctid = ANY ($1::text[]::tid[]);
